// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package claudecode

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
)

const ownFileReason = "This file configures the agent itself and cannot be changed. Write to the working directory instead."

func notListed(tool string) string {
	return fmt.Sprintf("Tool %s is not on the list of allowed tools. Use another tool.", tool)
}

func impostorReason(tool string, s claude.HookMCPServer) string {
	return fmt.Sprintf("%s is denied: its MCP server (%q, source %q) is not the server that the policies know by this name. Do not use the tools of this server.", tool, s.Name, s.Source)
}

func denialText(d event.Decision) string {
	return cmp.Or(d.Reason, fmt.Sprintf("%s is not permitted. Continue without this call.", cmp.Or(d.Tool, "This tool")))
}

func unanswered(req *claude.PermissionRequest, reason string) string {
	if reason != "" {
		reason = " (" + reason + ")"
	}
	return fmt.Sprintf("%s needs approval%s, but no permission callback is set. Continue without this call.", req.ToolName, reason)
}

func noPerson(tool string) string {
	return fmt.Sprintf("%s needs an answer from a person, but no person is available. Continue without this call.", tool)
}

// denial is the reason of the denial of a call whose Rewrite failed.
func denial(err error) string {
	switch {
	case errors.Is(err, guard.ErrDeadlineExceeded):
		return "Deadline exceeded"
	case errors.Is(err, guard.ErrBudgetExhausted):
		return "Budget exhausted"
	}
	return advice.Text(err)
}

func answerCheckFailed(err error) string {
	return fmt.Sprintf("The answer is not accepted because its check failed: %s\nGive the answer again.", advice.Text(err))
}

func stopCheckFailed(err error) string {
	return fmt.Sprintf("The completion check failed: %s\nReview your work, finish what is missing, then stop again.", advice.Text(err))
}

func unreadableCall(err error) error {
	return fmt.Errorf("the message to the tool cannot be read: %w. Call the tool again with a JSON object", err)
}

func ambiguousField(name, known string) error {
	return fmt.Errorf("the message to the tool has the field %q, which is almost %q. Write it as %q and call the tool again", name, known, known)
}
