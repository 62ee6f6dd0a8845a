// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// The CLI's numbers are doubles: it makes 9007199254740992 of 9007199254740993. What it would change is
// refused, or goes past it as a text; and the session has what the model has read.
func TestWholeNumbers_NoneIsChangedOnItsWay(t *testing.T) {
	cli := claudetest.CLI(t)
	type order struct {
		ID     int64   `json:"id"`
		Weight float64 `json:"weight,omitempty"`
		Note   any     `json:"note,omitempty"`
	}
	type receipt struct {
		Next uint64 `json:"next"`
	}
	var got []order
	place := tool.Must("place", "Places an order.", func(_ context.Context, o order) (receipt, error) {
		got = append(got, o)
		return receipt{Next: 1<<64 - 1}, nil
	})
	call := func(id, input string) script.Turn {
		return script.Reply(script.ToolCall{ID: id, Name: "mcp__drover__place", Input: json.RawMessage(input)})
	}
	answer := func(id string) script.Turn {
		return script.Reply(script.ToolCall{Name: "StructuredOutput", Input: json.RawMessage(`{"id":` + id + `}`)})
	}
	model := claudetest.NewModel(
		t,
		call("beyond", `{"id":9007199254740993}`),
		call("untyped", `{"id":1,"note":{"of":[-9007199254740993]}}`),
		call("within", `{"id":-9007199254740991,"weight":1e300}`),
		answer("9007199254740993"),
		answer("9007199254740991"),
	).RequireAllUsed()
	p, err := prompt.NewPrompt[order]("shop", "order", prompt.Markdown("task", "Task", "Place an order.").With(place))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Output.ID != 9007199254740991 || resp.Repairs != 1 {
		t.Errorf("the answer is %d after %d repairs", resp.Output.ID, resp.Repairs)
	}
	if diff := cmp.Diff([]order{{ID: -9007199254740991, Weight: 1e300}}, got); diff != "" {
		t.Errorf("arguments of the tool (-want +got):\n%s", diff)
	}
	read := model.Requests()
	const rounded = "must be between -9007199254740991 and 9007199254740991"
	for i, want := range map[int]string{1: "/id: " + rounded, 2: "/note/of/0: " + rounded, 3: `{"next":18446744073709551615}`, 4: "/id: " + rounded} {
		if !read[i].SawText(want) {
			t.Errorf("request %d of the model does not have %q", i, want)
		}
	}
	status := map[string]event.ToolStatus{}
	for c := range session.Query[session.ToolInvoked](resp.Session).All() {
		status[string(c.CallID)] = c.Status
		if c.CallID == "within" && !strings.Contains(c.Output, "18446744073709551615") {
			t.Errorf("the session has the result %s", c.Output)
		}
	}
	for id, want := range map[string]event.ToolStatus{"beyond": event.ToolError, "untyped": event.ToolError, "within": event.ToolSuccess} {
		if status[id] != want {
			t.Errorf("call %s has the status %q", id, status[id])
		}
	}
}
