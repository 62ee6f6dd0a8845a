// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"fmt"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/workspace"
)

// A program that prints the events of a run prints texts for people, whichever package an event comes from.
func TestString_OfThePayloadsInAStream(t *testing.T) {
	for name, x := range map[string]struct {
		value event.Payload
		want  string
	}{
		"a subagent":            {drover.SubagentStarted{ID: "a1", Type: "Explore"}, "Explore"},
		"a subagent of no type": {drover.SubagentStarted{ID: "a1"}, "a1"},
		"its end":               {drover.SubagentStopped{ID: "a1", Type: "Explore", Text: "All is read."}, "Explore: All is read."},
		"its silent end":        {drover.SubagentStopped{ID: "a1"}, "a1"},
		"a compaction to come":  {drover.Compacting{Trigger: "auto", Instructions: "Keep the plan."}, "auto"},
		"a failed check":        {drover.CompletionFailed{Round: 2, SentBack: true, Feedback: "<blocker>\nCreate a.txt\n</blocker>"}, "round 2, sent back: Create a.txt"},
		"the last failed check": {drover.CompletionFailed{Round: 3}, "round 3"},
		"a cell":                {isolation.Protection{Level: isolation.LevelCell, Enforced: []string{"files"}}, "cell"},
		"a weaker one":          {isolation.Protection{Level: isolation.LevelLandlock, Missing: []string{"processes", "UDP"}}, "landlock, without: processes; UDP"},
		"a breach":              {isolation.Breach{What: "bytes", Limit: 1, Found: 2, Message: "it has written too much"}, "it has written too much"},
		"a model call":          {gateway.ModelCall{Model: "opus", Tokens: gateway.Tokens{Input: 204, CacheRead: 1000, Output: 96}, CostUSD: 0.006, DurationMS: 2100}, "opus: 1,204 in, 96 out, $0.0060, 2.1 s"},
		"a failed model call":   {gateway.ModelCall{Model: "opus", DurationMS: 20, Error: "overloaded_error"}, "opus: 0 in, 0 out, $0.00, 20 ms: overloaded_error"},
		"a refused request":     {gateway.Refused{Method: "POST", Path: "/v1/files", Status: 403, Reason: "it is not allowed"}, "POST /v1/files: it is not allowed"},
		"a limit":               {gateway.Limit{Limit: "MaxCostUSD", Consumed: 1, Max: 0.5, Reason: "the budget is spent"}, "the budget is spent"},
		"a busy service":        {gateway.BackOff{Upstream: "api.example", Status: 529, Attempt: 2, WaitMS: 1500}, "api.example answered 529, attempt 2, waiting 1.5 s"},
		"a connection":          {proxy.Connection{Host: "a.example", Port: 443, Verdict: proxy.Allowed}, "a.example:443 allowed"},
		"a denied connection":   {proxy.Connection{Verdict: proxy.Denied, Reason: "no host is named"}, "denied: no host is named"},
		"tokens so far":         {claudecode.Tokens{Input: 1204, Output: 96}, "1,204 in, 96 out"},
		"a task":                {claudecode.Task{ID: "t1", State: claudecode.TaskStarted, Description: "find the tests"}, "started: find the tests"},
		"a failed task":         {claudecode.Task{ID: "t1", State: claudecode.TaskEnded, Status: "failed", Error: "the disk is full"}, "ended (failed): t1: the disk is full"},
		"a compaction":          {claudecode.Compaction{TokensBefore: 180_000, TokensAfter: new(20_000)}, "180,000 tokens became 20,000"},
		"an unknown one":        {claudecode.Compaction{TokensBefore: 1}, "1 token became fewer"},
		"a limit of an account": {claudecode.RateLimit{Status: "allowed_warning", Type: "five_hour", Utilization: new(0.91)}, "five_hour allowed_warning, 91 % used"},
		"a rollback":            {workspace.Restored{Tool: "Bash", RolledBack: workspace.RolledBack{Restored: []string{"a", "b"}, Conflicts: []workspace.Conflict{{Path: "c"}}}, Error: "c is busy"}, "Bash: 2 paths rolled back, 1 conflict: c is busy"},
		"a workspace":           {workspace.Record{TempDir: "/tmp/w", Previews: []workspace.Preview{{}}}, "/tmp/w, 1 mount"},
	} {
		if got := fmt.Sprint(x.value); got != x.want {
			t.Errorf("%s is printed as\n%s\nwant\n%s", name, got, x.want)
		}
	}
}
