// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
)

func TestString_OfAResponse(t *testing.T) {
	summary := drover.Summary{
		PromptName: "demo:review", Text: "a text", Status: event.DoneSuccess, Duration: 1400 * time.Millisecond, Turns: 3,
		Usage: event.Usage{ToolUses: 8, Cost: &event.Cost{USD: 0.0214}}, Completion: guard.Complete(), Session: session.New(nil),
	}
	unfinished := summary
	unfinished.Completion, unfinished.Cleanup = guard.Incomplete("<blocker>\nCreate a.txt\n</blocker>"), errors.New("a file is left")
	unchecked := summary
	unchecked.Completion.Skipped, unchecked.NotRecorded = true, errors.New("the disk is full")
	const line = "demo:review: success in 1.4s, 3 model calls, $0.0214, 8 tool calls"
	for name, x := range map[string]struct {
		value any
		want  string
	}{
		"a summary":         {summary, line},
		"a pointer to it":   {&summary, line},
		"not finished":      {unfinished, line + "; not done: Create a.txt; the cleanup failed: a file is left"},
		"not checked":       {unchecked, line + "; not checked; not recorded whole: the disk is full"},
		"before a run":      {drover.Summary{Completion: guard.Complete()}, "evaluation: not begun in 0s, 0 model calls, 0 tool calls"},
		"an answer in text": {&drover.Response[string]{Output: "All is well.\n", Summary: summary}, "All is well.\n" + line},
		"a typed answer":    {drover.Response[struct{ Lines int }]{Output: struct{ Lines int }{7}, Summary: summary}, "{Lines:7}\n" + line},
		"counts":            {drover.Stats{Prompts: 1, ToolCalls: 8}, "1 prompt, 8 tool calls"},
		"all counts":        {drover.Stats{Prompts: 2, ToolCalls: 8, Subagents: 1, Compactions: 3, HookErrors: 4}, "2 prompts, 8 tool calls, 1 subagent, 3 compactions, 4 failed hooks"},
		"one model call":    {drover.Summary{Status: event.DoneSuccess, Turns: 1, Completion: guard.Complete()}, "evaluation: success in 0s, 1 model call, 0 tool calls"},
		"no counts":         {drover.Stats{}, "nothing happened"},
	} {
		if got := fmt.Sprint(x.value); got != x.want {
			t.Errorf("%s is printed as\n%s\nwant\n%s", name, got, x.want)
		}
	}
}
