// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/guard"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func TestLimits_TokensAndTime(t *testing.T) {
	cli := claudetest.CLI(t)
	read := script.Call("Read", script.Input{"file_path": cli.WriteFile(t, "shop.txt", "cart")}).Metered(script.Usage{Input: 1000, Output: 100})
	answer := script.Text("It is a shop.").Metered(script.Usage{Input: 1000, Output: 200})
	for _, c := range []struct {
		name    string
		tokens  int64
		kept    int64
		time    time.Duration
		turns   []script.Turn
		printed string
		result  string // what the model reads of its last call
	}{
		{
			name: "enough of both", tokens: 50_000, time: time.Hour, turns: []script.Turn{read, answer},
			printed: "It is a shop.\nTokens remaining: 47700\n", result: "cart",
		},
		{
			name: "the rest is for the answer", tokens: 5_000, kept: 3_000, time: time.Hour, turns: []script.Turn{read, read, answer},
			printed: "It is a shop.\nTokens remaining: 1600\n", result: "The tokens that are left are for the answer.",
		},
		{
			name: "the budget is spent", tokens: 1_050, time: time.Hour, turns: []script.Turn{read, script.Hang().Always()},
			printed: "Used too many tokens\nTokens remaining: -50\n",
		},
		{
			name: "the time is over in the middle", tokens: 50_000, time: time.Second, turns: []script.Turn{script.Hang().Always()},
			printed: "Task took too long\nTokens remaining: 4", // the call that was left, if it was made in time, is charged by an estimate
		},
		{
			name: "the time is over before", tokens: 50_000, time: 0,
			printed: "Task took too long\nTokens remaining: 50000\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: c.tokens, Deadline: guard.FromNow(c.time)})
			model := claudetest.NewModel(t, c.turns...)
			var out strings.Builder
			if err := run(t.Context(), &out, cli.Options(model), tracker, c.kept); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(c.printed, " 4") && len(model.Requests()) == 0 { // the CLI took the whole time to start
				c.printed = strings.TrimSuffix(c.printed, "4") + "50000\n"
			}
			if diff := cmp.Diff(c.printed, out.String()); diff != "" && (strings.HasSuffix(c.printed, "\n") || !strings.HasPrefix(out.String(), c.printed)) {
				t.Errorf("limits printed (-want +got):\n%s", diff)
			}
			if got, _, _ := model.ToolResult("Read"); !strings.Contains(got, c.result) {
				t.Errorf("the model read %q of its last call, want %q", got, c.result)
			}
		})
	}
}
