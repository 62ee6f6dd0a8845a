// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/event"
	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/tool"
)

// forgetful plays a CLI that does not send the ids of calls to the servers that run them.
type forgetful struct {
	*claudetest.ScriptSession
	hooks map[string][]struct {
		IDs []string `json:"hookCallbackIds"`
	}
	rpc int
}

func (f *forgetful) initialize() {
	var request struct {
		Hooks any `json:"hooks"`
	}
	request.Hooks = &f.hooks
	_ = json.Unmarshal(f.Initialize("").Request, &request)
}

// ask asks all hooks of an event, and reports whether one of them denies.
func (f *forgetful) ask(event string, input map[string]any) (denied bool) {
	input["hook_event_name"] = event
	raw, _ := json.Marshal(input)
	for _, h := range f.hooks[event] {
		for _, id := range h.IDs {
			answer := f.Reply(f.Ask("hook_callback", fmt.Sprintf(`{"callback_id":%q,"input":%s}`, id, raw)))
			denied = denied || strings.Contains(string(answer), `"deny"`)
		}
	}
	return denied
}

func (f *forgetful) pre(id, input string) (denied bool) {
	return f.ask("PreToolUse", map[string]any{"tool_name": "mcp__desk__note", "tool_input": json.RawMessage(input), "tool_use_id": id})
}

func (f *forgetful) batch(id string) {
	f.ask("PostToolBatch", map[string]any{"tool_calls": []any{map[string]any{"tool_name": "mcp__desk__note", "tool_use_id": id}}})
}

func (f *forgetful) call(input string) {
	f.rpc++
	f.Reply(f.Ask("mcp_message", fmt.Sprintf(`{"server_name":"desk","message":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"note","arguments":%s}}}`, f.rpc, input)))
}

// With a CLI that sends no ids calls have them all the same: those of the hooks, by name and input, the first
// for the first. Calls that were denied, here or by the CLI, leave none behind. One that no hook has seen has
// none, and is decided when it comes.
func TestCalls_HaveIDsWithACLIThatSendsNone(t *testing.T) {
	script := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		f := &forgetful{ScriptSession: s}
		f.initialize()
		s.Await("user")
		s.State("running")
		for _, id := range []string{"t1", "t2"} {
			f.pre(id, `{"text":"same","n":1}`)
		}
		f.pre("t3", `{"text":"other","n":1}`)
		f.call(`{"n":1,"text":"other"}`)
		f.call(`{"n":1,"text":"same"}`) // the order of the keys does not matter
		f.call(`{"n":1,"text":"same"}`)
		f.pre("t4", `{"text":"rewrite me","n":1}`)
		f.call(`{"text":"rewritten","n":1}`)
		if !f.pre("t5", `{"text":"denied at first","n":1}`) {
			s.Stderr("t5 was not denied")
		}
		f.pre("t6", `{"text":"denied at first","n":1}`)
		f.call(`{"text":"denied at first","n":1}`)
		f.pre("t7", `{"text":"refused by the CLI","n":1}`)
		f.batch("t7")
		f.pre("t8", `{"text":"refused by the CLI","n":1}`)
		f.call(`{"text":"refused by the CLI","n":1}`)
		f.call(`{"text":"no hook was asked","n":1}`)
		s.SendText("Done.")
		s.Result("Done.")
		s.State("idle")
		s.UntilEOF()
	})
	type noteInput struct {
		Text string `json:"text"`
		N    int    `json:"n"`
	}
	var ran, decided []string
	note := tool.Must("note", "Notes.", func(ctx context.Context, in noteInput) (string, error) {
		ran = append(ran, in.Text+": "+claude.ToolUseIDFromContext(ctx))
		return "noted", nil
	}, tool.ReadOnly)
	host := tool.DeciderFunc(func(_ context.Context, call event.ToolCall) event.Decision {
		id := call.ID
		if len(id) > 2 {
			id = "a new one"
		}
		decided = append(decided, string(id))
		if id == "t5" {
			return event.Decision{Verdict: event.Deny, Reason: "no"}
		}
		return event.Decision{Verdict: event.Allow}
	})
	rewrite := func(_ context.Context, call event.ToolCall) (json.RawMessage, error) {
		return json.RawMessage(strings.ReplaceAll(string(call.Input), "rewrite me", "rewritten")), nil
	}
	for _, err := range New(script.Options()).Run(t.Context(), agent.Request{
		Prompt: "go", Registry: tool.MustRegistry(nil, note), Settings: agent.Settings{ToolServer: "desk"}, Host: host, Hooks: &agent.Hooks{Rewrite: rewrite},
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"other: t3", "same: t1", "same: t2", "rewritten: t4", "denied at first: t6", "refused by the CLI: t8", "no hook was asked: "}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Errorf("the tool was called with (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "a new one"}, decided); diff != "" {
		t.Errorf("the host decided about (-want +got):\n%s", diff)
	}
}
