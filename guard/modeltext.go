// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package guard

import (
	"fmt"
	"html"
	"strings"

	"github.com/drover-agents/drover/session"
)

// Feedback of checkers.
const (
	blocker       = "<blocker>\n%s\n</blocker>" // cannot be mistaken for a result of a tool
	notDone       = "You are not done. Continue with the task."
	filesMissing  = "You are not done. Create these missing files: %s"
	commandFailed = "You are not done. `%s` ended with exit code %d. Fix the cause. The output ends with:\n%s"
)

// Feedback about the deadline.
const (
	timeLeft      = "%v are left for this task."
	timeLow       = "Only " + timeLeft
	timeLowStep   = "Finish the current step."
	timeLowAnswer = "Then give your answer; leave out what is not essential."
	timeOver      = "The time for this task is over."
	timeOverStep  = "Stop working and give your answer with what you have."
)

// RenderFeedback returns the text of a feedback that the agent reads.
func RenderFeedback(f session.Feedback) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<feedback provider='%s'>\n%s\n", html.EscapeString(f.Provider), f.Summary)
	for _, o := range f.Observations {
		fmt.Fprintf(&b, "\n- %s", o)
	}
	if len(f.Observations) > 0 {
		b.WriteString("\n")
	}
	for _, s := range f.Suggestions {
		fmt.Fprintf(&b, "\n-> %s", s)
	}
	if len(f.Suggestions) > 0 {
		b.WriteString("\n")
	}
	b.WriteString("</feedback>")
	return b.String()
}
