// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/workspace"
)

func TestError_RemovesPackageNames(t *testing.T) {
	for text, want := range map[string]string{
		"claude: CLI not found":                         "CLI not found",
		"agent: claude: gate: no":                       "no",
		"agent: permissions of the run: gate: no":       "permissions of the run: no",
		"claude: one\nclaude: two":                      "one\ntwo",
		"the CLI ended\n  standard error: no such file": "the CLI ended\n  standard error: no such file",
		"a.yaml:3:5: prompt: there is no such key":      "a.yaml:3:5: prompt: there is no such key",
		"agentfile: a.yaml:3:5: tool: gate: no":         "a.yaml:3:5: tool: gate: no",
		"a.yaml:3:5: policy.rules: gate: no":            "a.yaml:3:5: policy.rules: no",
		"request 3: gate: no":                           "request 3: no",
		"an agent: no, a man":                           "an agent: no, a man",
		"claude: CLI is too old: option VerbatimPrompts: is not known to the CLI, which would ignore it; use CLI 2.1.325": "CLI is too old: a prompt with standard input: is not known to the CLI, which would ignore it; use CLI 2.1.325",
	} {
		if got := Error(errorText(text)); got != want {
			t.Errorf("Error(%q) is %q, want %q", text, got, want)
		}
	}
}

// goNames are options that no flag has, and commands that cannot be sent.
var goNames = regexp.MustCompile(`Options|/compact|MountPath|FollowSymlinks|\b[Ee]xclude\b|\bDir\b|\bForce\b|\bState\b|TempDir`)

// What the libraries advise programs to do is not what people can do.
func TestError_HasNoAdviceForPrograms(t *testing.T) {
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

func TestFlags_StandForOptions(t *testing.T) {
	for next, want := range map[string]string{
		"make room, or lower the floor":                                      "make room",
		"look at it, or raise the limit on CPU time":                         "look at it",
		"fix it; Options.Debug makes it report more":                         "fix it",
		"set Isolation.TempDir to a folder":                                  "set TMPDIR to a folder",
		"set ANTHROPIC_API_KEY\nor set Isolation.APIKey\nor log in":          "set ANTHROPIC_API_KEY\nor log in",
		"install it; or set Isolation.Weakest (drover run --isolation host)": "install it; or use drover run --isolation host",
		"leave it out and set Localhost (NetworkPolicy.AllowLocalhost)":      "leave it out, and add --allow-localhost",
	} {
		if got := Flags(next); got != want {
			t.Errorf("Flags(%q) is %q, want %q", next, got, want)
		}
	}
}

func TestError_JoinedErrorsKeepTheirAdvice(t *testing.T) {
	err := errors.Join(
		advice.Wrap(errors.New("claude: full"), "make room, or lower the floor"),
		fmt.Errorf("gate: %w", errors.New("agent: no")),
		advice.Wrap(errors.New("tool: late"), "set TempDir to a faster disk"),
	)
	want := "full\n  next: make room\nno\nlate\n  next: set TMPDIR to a faster disk"
	if got := Error(err); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }
