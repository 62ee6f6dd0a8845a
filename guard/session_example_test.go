// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
)

// A session says where the agent works and what it may not use; a clock says when it is over. All of that
// is asked about before each tool call. Relative paths are made those of the workspace, so that a command
// that changes the directory makes no difference to them.
func Example_beforeEachCall() {
	ctx := context.Background()
	s := session.New(nil)
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	clock := guard.Clock(func() time.Time { return now })
	rules := gate.Must(gate.Limits(gate.LimitOptions{}), gate.Blocked(), gate.Custom("workspace", inWorkspace), gate.Default(event.Allow))
	engine := gate.NewEngine(rules, &gate.EngineOptions{Facts: guard.Facts(guard.FactsOptions{
		Session: s, Deadline: clock.FromNow(5 * time.Minute),
		Target: func(gate.Call, string) gate.Target { return gate.Target{} }, // this example has no files
	})})
	ask := func(id, name, input string) {
		d := engine.Decide(ctx, event.ToolCall{ID: event.CallID(id), Name: name, Input: json.RawMessage(input)})
		fmt.Println(name, d.Verdict, d.Reason+string(d.Input))
	}
	for _, v := range []any{session.Workspace{Root: "/work"}, session.ToolPermissions{Blocked: []string{"WebFetch"}}} {
		if _, err := s.Dispatch(ctx, v); err != nil {
			fmt.Println(err)
		}
	}
	ask("1", "Read", `{"file_path":"src/cart.py"}`)
	ask("2", "WebFetch", `{"url":"http://localhost"}`)
	now = now.Add(5 * time.Minute)
	ask("3", "Read", `{"file_path":"src/shop.py"}`)
	// Output:
	// Read allow {"file_path":"/work/src/cart.py"}
	// WebFetch deny Tool WebFetch blocked by session policy
	// Read deny Deadline exceeded
}

// inWorkspace allows calls about files, and makes their paths absolute.
func inWorkspace(c *gate.Call, f *gate.Facts) (event.Decision, bool) {
	var in map[string]any
	if c.Name != "Read" && c.Name != "Write" && c.Name != "Edit" || json.Unmarshal(c.Input, &in) != nil {
		return event.Decision{}, false
	}
	file, ok := in["file_path"].(string)
	if !ok || path.IsAbs(file) {
		return event.Decision{}, false
	}
	in["file_path"] = path.Join(f.Dir, file)
	input, err := json.Marshal(in)
	return event.Decision{Verdict: event.Allow, Input: input}, err == nil
}
