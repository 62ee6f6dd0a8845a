// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
)

func ofMain(r *script.Request) bool { return r.Header.Get("X-Claude-Code-Agent-Id") == "" }

// An honest run with a subagent, a compaction and answers that are tried again has the turns that the CLI counts.
func TestMaxTurns_CountsTurnsAsTheCLI(t *testing.T) {
	cost, full := script.Usage{Input: 100, Output: 20}, script.Usage{Input: 990_000, Output: 20}
	asksForSummary := func(r *script.Request) bool {
		return strings.Contains(string(r.Body), "Your task is to create a detailed summary")
	}
	for name, tc := range map[string]struct {
		turns int
		want  event.DoneStatus
	}{"enough turns": {5, event.DoneSuccess}, "one too few": {4, event.DoneMaxTurns}} {
		t.Run(name, func(t *testing.T) {
			summaries := 0
			steps := []script.Turn{
				script.Text("It is done.").Metered(cost).WhenFunc(func(r *script.Request) bool { return !ofMain(r) && strings.Contains(string(r.Body), "tool_result") }).Always(),
				script.Reply(bash("true")).Metered(cost).WhenFunc(func(r *script.Request) bool { return !ofMain(r) }).Always(),
				script.Func(func(*script.Request) script.Turn {
					summaries++
					return script.Text("<summary>all</summary>").Metered(cost)
				}).WhenFunc(asksForSummary).Always(),
				script.Call("Agent", script.Input{"description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": false}).Metered(cost),
				script.Reply(bash("true")).Metered(cost),
				script.Fail(500, "boom"),
				script.Reply(bash("true")).Metered(full),
				script.Text("half an answer").Breaking(script.Fault{Kind: script.FaultTruncate, After: 3}),
				script.Reply(bash("true")).Metered(cost),
				script.Text("Done.").Metered(cost).Always(),
			}
			base := claudetest.CLI(t).Options(claudetest.NewModel(t, steps...))
			base.PermissionMode = claude.ModeBypassPermissions
			got := in(t, nil, base, agent.Request{Settings: agent.Settings{MaxTurns: tc.turns}})
			last := got[len(got)-1].Payload.(event.Done)
			var turns *gateway.TurnsError
			if last.Status != tc.want || errors.As(last.Cause, &turns) {
				t.Errorf("the run ended with %s: %v", last.Status, last.Cause)
			}
			if calls := of[gateway.ModelCall](got); len(calls) < 8 || summaries == 0 {
				t.Errorf("there were %d calls and %d summaries: %+v\nthe last event before the end is %+v", len(calls), summaries, calls, got[max(0, len(got)-2)])
			}
		})
	}
}

// A command that calls the model as often as it can gets as many calls as there may be others.
func TestMaxTurns_ForgedCallsAreBounded(t *testing.T) {
	forge := func(n int) string {
		return fmt.Sprintf(`at=${ANTHROPIC_BASE_URL#http://}
body='{"model":"claude-sonnet-4-5","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}'
for n in $(seq %d); do
exec 3<>/dev/tcp/${at%%:*}/${at##*:}
printf 'POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %%s\r\nContent-Length: %%d\r\nConnection: close\r\n\r\n%%s' "$ANTHROPIC_API_KEY" ${#body} "$body" >&3
head -1 <&3; cat <&3 >/dev/null
done`, n)
	}
	for name, tc := range map[string]struct {
		others, most int
		status       event.DoneStatus
	}{"by default": {0, 31, event.DoneMaxTurns}, "raised": {20, 45, event.DoneSuccess}} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, script.Reply(bash(forge(42))), script.Text("Done.").Always())
			base := claudetest.CLI(t).Options(model)
			base.PermissionMode = claude.ModeBypassPermissions
			got := in(t, nil, base, agent.Request{Settings: agent.Settings{MaxTurns: 3, SideCallsPerTurn: tc.others}})
			last := got[len(got)-1].Payload.(event.Done)
			if calls := len(model.Requests()); last.Status != tc.status || calls > tc.most || calls < 31 {
				t.Errorf("the run ended with %s (%v) after %d calls, want %s and at most %d", last.Status, last.Cause, calls, tc.status, tc.most)
			}
			if tc.status == event.DoneMaxTurns {
				if f := claudecode.New(nil).Classify(last.Cause); f.Kind != agent.FailureMaxTurns {
					t.Errorf("the failure is %+v", f)
				}
			}
		})
	}
}
