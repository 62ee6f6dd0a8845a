// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/drover-agents/drover/session"
)

// StaticFeedback gives the same feedback each time.
type StaticFeedback struct {
	// As is the name.
	As   string
	Text string
	// Severity is [SeverityInfo] unless it is set.
	Severity string
}

// Name implements [FeedbackProvider].
func (p StaticFeedback) Name() string { return p.As }

// Provide implements [FeedbackProvider].
func (p StaticFeedback) Provide(context.Context, *session.Session) (session.Feedback, error) {
	return session.Feedback{Summary: p.Text, Severity: cmp.Or(p.Severity, SeverityInfo)}, nil
}

// DeadlineFeedback reports how much time is left.
type DeadlineFeedback struct {
	Deadline Deadline
	// Low is when the agent is asked to come to an end. Zero means two minutes.
	Low time.Duration
}

// Name implements [FeedbackProvider].
func (DeadlineFeedback) Name() string { return "Deadline" }

// Provide implements [FeedbackProvider].
func (p DeadlineFeedback) Provide(context.Context, *session.Session) (session.Feedback, error) {
	if p.Deadline.IsZero() {
		return session.Feedback{}, nil
	}
	left := p.Deadline.Remaining().Round(time.Second)
	switch {
	case p.Deadline.Expired():
		return session.Feedback{
			Summary: timeOver, Severity: SeverityWarning,
			Suggestions: []string{timeOverStep},
		}, nil
	case left <= cmp.Or(p.Low, 2*time.Minute):
		return session.Feedback{
			Summary: fmt.Sprintf(timeLow, left), Severity: SeverityWarning,
			Suggestions: []string{timeLowStep, timeLowAnswer},
		}, nil
	}
	return session.Feedback{Summary: fmt.Sprintf(timeLeft, left), Severity: SeverityInfo}, nil
}
