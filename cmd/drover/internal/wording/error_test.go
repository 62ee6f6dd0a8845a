// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/workspace"
)

func TestPlainError(t *testing.T) {
	for text, want := range map[string]string{
		"claude: CLI not found":                             "CLI not found",
		"agent: claude: gate: no":                           "no",
		"agent: permissions of the run: gate: no":           "permissions of the run: no",
		"claude: one\nclaude: two":                          "one\ntwo",
		"the CLI ended\n  claude said: no such file":        "the CLI ended\n  claude said: no such file",
		"an agent: no, a man":                               "an agent: no, a man",
		"full\n  next: make room, or lower the floor":       "full\n  next: make room",
		"big\n  next: look, or raise the limit on CPU time": "big\n  next: look",
		"claude: the conversation in Options.Store: transcript: locking p/u: " + transcript.ErrInUse.Error():                            "--resume: the conversation is in use\n  next: wait until the other run has ended",
		"claude: the conversation in Options.Store: " + transcript.ErrNotFound.Error() + ": conversation u is of\n  next: move u.jsonl": "--resume: conversation u is of\n  next: move u.jsonl",
	} {
		if got := Error(errorText(text)); got != want {
			t.Errorf("Error(%q) is %q, want %q", text, got, want)
		}
	}
}

// goNames are options that no flag has, and commands that cannot be sent.
var goNames = regexp.MustCompile(`Options|/compact|MountPath|FollowSymlinks|\b[Ee]xclude\b|\bDir\b|\bForce\b|\bState\b|TempDir`)

// What the libraries advise programs to do is not what people can do.
func TestErrorsForPeopleHaveNoAdviceForPrograms(t *testing.T) {
	for _, err := range []error{
		&claude.ProcessError{During: "initialize"},
		&claude.ProcessError{During: "a turn"},
		&claude.ProcessError{During: "a turn", StderrTail: "out of luck"},
		&claude.MessageTooLargeError{Limit: 10},
		&claude.ResultError{TerminalReason: "prompt_too_long", Result: "Prompt is too long"},
		&claude.ControlError{Subtype: "interrupt", Message: "no"},
		&claude.ControlTimeoutError{Subtype: "initialize", After: time.Second},
		&workspace.BudgetError{Path: "a", Bytes: 2, Limit: 1, Store: true},
		&workspace.ConflictError{Conflicts: []workspace.Conflict{{Path: "a", Reason: "was changed"}}},
	} {
		got := Error(err)
		if _, next, _ := strings.Cut(got, "\n  next: "); goNames.MatchString(got) || len(next) < 9 {
			t.Errorf("%T is worded as %q, want advice for people", err, got)
		}
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }
