// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
)

// The token of the run is in the cell's environment. Who uses it beside the CLI pays from the same budget,
// and is seen.
func TestMeter_ModelCallsOfACommandAreReported(t *testing.T) {
	const call = `at=${ANTHROPIC_BASE_URL#http://}
exec 3<>/dev/tcp/${at%:*}/${at##*:}
body='{"model":"claude-sonnet-4-5","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}'
printf 'POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' "$ANTHROPIC_API_KEY" ${#body} "$body" >&3
`
	cost := script.Usage{Input: 100, Output: 20}
	for name, tc := range map[string]struct {
		steps []script.Turn
		want  *claudecode.UsageDifference
	}{
		"the CLI alone": {steps: []script.Turn{script.Reply(bash("true")).Metered(cost), script.Text("Done.").Metered(cost)}},
		"a subagent": {steps: []script.Turn{
			script.Call("Agent", script.Input{"description": "d", "prompt": "p", "subagent_type": "general-purpose"}).Metered(cost),
			script.Text("Said.").Metered(cost).Always(), // by both
		}},
		"a command": {
			steps: []script.Turn{script.Reply(bash(call + "cat <&3")).Metered(cost), script.Text("Stolen.").Metered(cost), script.Text("Done.").Metered(cost)},
			want:  &claudecode.UsageDifference{CLI: claudecode.Tokens{Input: 200, Output: 40}, Gateway: claudecode.Tokens{Input: 300, Output: 60}, Whole: claudecode.Tokens{Input: 300, Output: 60}, CLIUSD: 0.0016, GatewayUSD: 0.0022},
		},
		"a command that hangs up": {
			steps: []script.Turn{
				script.Reply(bash(call + "head -c 15 <&3")).Metered(cost),
				script.Text("Stolen answer.").Chunked(1, 40*time.Millisecond).Metered(cost), script.Text("Done.").Metered(cost),
			},
			want: &claudecode.UsageDifference{
				CLI: claudecode.Tokens{Input: 200, Output: 40}, Gateway: claudecode.Tokens{Input: 300, Output: 60},
				Whole: claudecode.Tokens{Input: 200, Output: 40}, Aborted: claudecode.Tokens{Input: 100, Output: 20}, CLIUSD: 0.0016, GatewayUSD: 0.0022,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			base := cli.Options(claudetest.NewModel(t, tc.steps...).RequireAllUsed())
			base.PermissionMode = claude.ModeBypassPermissions
			got := in(t, nil, base, agent.Request{})
			last := got[len(got)-1]
			raw, there := last.Metadata[claudecode.UsageDiffers]
			if there != (tc.want != nil) {
				t.Fatalf("the difference is %s, want one: %t\n%s\n%+v", raw, tc.want != nil, last.Metadata[claudecode.GatewayUsage], of[event.ToolResult](got))
			}
			if !there {
				return
			}
			var difference claudecode.UsageDifference
			if err := json.Unmarshal(raw, &difference); err != nil || difference != *tc.want {
				t.Errorf("got %+v (%v), want %+v", difference, err, *tc.want)
			}
		})
	}
}
