// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

func TestDenials_NameTheFlagsThatAllow(t *testing.T) {
	denied := func(id, name, policy string, asked bool) event.Decision {
		return event.Decision{CallID: event.CallID(id), Tool: name, Policy: policy, Asked: asked}
	}
	for name, c := range map[string]struct {
		decisions []event.Decision
		results   []event.ToolResult
		flags     map[tool.Capability]string
		want      string
	}{
		"no person could be asked": {
			decisions: []event.Decision{denied("1", "Bash", "capabilities", false), denied("2", "Write", "capabilities", false), denied("3", "Bash", "capabilities", false)},
			want:      "3 tool calls were denied: Bash (2), Write (1)\n  next: add --allow fileWrite,shellExecute",
		},
		"a person denied, who knows how to allow": {
			decisions: []event.Decision{denied("1", "Bash", "approver", true)},
			want:      "1 tool call was denied: Bash (1)",
		},
		"what is allowed is not what was lacking": {
			decisions: []event.Decision{denied("1", "Bash", "rules", false)},
			flags:     map[tool.Capability]string{tool.ShellExecute: "allow"},
			want:      "1 tool call was denied: Bash (1)",
		},
		"read-only": {
			decisions: []event.Decision{denied("1", "Bash", "risk", false)},
			want:      "1 tool call was denied: Bash (1)\n  next: leave out --read-only to have Bash",
		},
		"not on the list": {
			decisions: []event.Decision{denied("1", "Bash", "allow-list", false)},
			want:      "1 tool call was denied: Bash (1)\n  next: name Bash in --tools to have it",
		},
		"the last word counts": {
			decisions: []event.Decision{denied("1", "Bash", "capabilities", false), {CallID: "1", Tool: "Bash", Verdict: event.Allow}, denied("2", "Write", "capabilities", false)},
			want:      "1 tool call was denied: Write (1)\n  next: add --allow fileWrite",
		},
		"the agent itself denied what was allowed": {
			decisions: []event.Decision{{CallID: "1", Tool: "Write", Verdict: event.Allow}},
			results:   []event.ToolResult{{ID: "1", Name: "Write", Status: event.ToolDenied}},
			flags:     map[tool.Capability]string{tool.FileWrite: "allow"},
			want:      "1 tool call was denied: Write (1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var d denials
			for _, made := range c.decisions {
				d.decision(made)
			}
			for _, r := range c.results {
				d.result(r)
			}
			got := advice.Text(d.report(&runOptions{permissions: permissionFlags{given: c.flags}}))
			if got = strings.TrimPrefix(got, "the agent came to its end, but "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A service may use an id again. What is decided about the later call does not change the earlier one.
func TestDenials_AnIDThatComesAgain(t *testing.T) {
	var d denials
	for _, verdict := range []event.Verdict{event.Deny, event.Allow, event.Deny} {
		status := event.ToolSuccess
		if verdict == event.Deny {
			status = event.ToolDenied
		}
		d.decision(event.Decision{CallID: "call_0", Tool: "Bash", Verdict: verdict})
		d.result(event.ToolResult{ID: "call_0", Name: "Bash", Status: status})
	}
	if got := d.all(); len(got) != 2 {
		t.Errorf("%d calls were denied, want 2: %v", len(got), got)
	}
}

func TestDenials_RejectedAnswerIsNotADenial(t *testing.T) {
	var d denials
	d.decision(event.Decision{CallID: "1", Tool: catalogue.Tools().AnswerTool, Verdict: event.Allow})
	d.result(event.ToolResult{ID: "1", Name: catalogue.Tools().AnswerTool, Status: event.ToolDenied})
	if got := d.all(); len(got) > 0 {
		t.Errorf("got %v, want none: the run would end with exit code 3 although its answer came", got)
	}
}

// The advice about a denial goes by the names of policies, which are the gate's.
func TestDenials_AdviceNamesPoliciesOfTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		policy gate.Policy
		want   string
	}{
		"--read-only": {gate.FromRisk(gate.RiskOptions{ReadOnly: true, AgentTools: true}), "leave out --read-only to have Bash"},
		"--tools":     {gate.AllowTools("Read"), "name Bash in --tools to have it"},
	} {
		t.Run(name, func(t *testing.T) {
			e := gate.NewEngine(gate.Must(gate.KnowsAgent(catalogue.Tools()), c.policy), nil)
			d := e.Decide(t.Context(), event.ToolCall{ID: "1", Name: "Bash", Input: []byte(`{"command":"ls"}`)})
			if got := adviceFor(event.Decision{Tool: "Bash", Policy: d.Policy}); got != c.want {
				t.Errorf("the policy is %q, and the advice %q, want %q", d.Policy, got, c.want)
			}
		})
	}
}

func TestOutcome_ResumeFailuresNameTheFlag(t *testing.T) {
	moved := advice.Wrap(fmt.Errorf("%w: conversation u is of this folder or of /b", transcript.ErrNotFound), "move u.jsonl")
	for name, test := range map[string]struct {
		resume string
		err    error
		want   string
	}{
		"in use":           {"u", fmt.Errorf("locking: %w", transcript.ErrInUse), "--resume: the conversation is in use\n  next: wait until the other run has ended"},
		"not a token":      {"u", transcript.ErrBadKey, "--resume: not a token of a conversation\n  next: move u.jsonl"},
		"of two folders":   {"u", moved, "--resume: conversation u is of this folder or of /b\n  next: move u.jsonl"},
		"unknown":          {"u", transcript.ErrNotFound, "--resume: there is no such conversation in this folder\n  next: move u.jsonl"},
		"without the flag": {"", transcript.ErrNotFound, transcript.ErrNotFound.Error() + "\n  next: move u.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outcome{options: &runOptions{resume: test.resume}}
			if got := advice.Text(o.ofResume(failure{err: test.err, text: test.err.Error()}, "move u.jsonl")); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
