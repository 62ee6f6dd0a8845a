// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

// A decidingHost allows what has "good" in its input, and counts.
type decidingHost struct {
	agent.Host
	asked []event.ToolCall
}

func (h *decidingHost) Decide(_ context.Context, call event.ToolCall) event.Decision {
	h.asked = append(h.asked, call)
	if strings.Contains(string(call.Input), "good") {
		return event.Decision{Verdict: event.Allow}
	}
	return event.Decision{Verdict: event.Deny, Reason: "bad input"}
}

// deskOf is a server that counts the calls it gets, behind the check.
func deskOf(t *testing.T, host agent.Host, more ...claude.Hook) (o *claude.Options, call func(message string) string, ran *int) {
	t.Helper()
	ran = new(int)
	server := &claude.MCPInProcess{Handle: func(_ context.Context, msg json.RawMessage) (json.RawMessage, error) {
		if strings.Contains(strings.ToLower(string(msg)), `"tools/call"`) {
			*ran++
		}
		return json.RawMessage(`{"result":"ran"}`), nil
	}}
	o = &claude.Options{MCPServers: map[string]claude.MCPServer{"my.desk": server}, Hooks: append([]claude.Hook{Hook(host)}, more...)}
	o.CanUseTool = func(ctx context.Context, _ *claude.PermissionRequest) (claude.PermissionResult, error) {
		answer, _ := ctx.Value(answerKey{}).(claude.PermissionResult)
		return answer, nil
	}
	req := agent.Request{Host: host}
	o.Dir = "/work"
	if err := bindCalls(o, req, testLedger(t, o, req, nil, nil)); err != nil {
		t.Fatal(err)
	}
	guarded := o.MCPServers["my.desk"].(*claude.MCPInProcess)
	return o, func(message string) string {
		answer, err := guarded.Handle(t.Context(), json.RawMessage(message))
		return fmt.Sprint(string(answer), err)
	}, ran
}

func toolCall(id, input string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"save","arguments":%s,"_meta":{"claudecode/toolUseId":%q}}}`, input, id)
}

// A call that the hook has allowed is not decided a second time; each run of it needs a decision.
func TestOwnCalls_AnAllowedCallRunsOnce(t *testing.T) {
	host := &decidingHost{}
	o, call, ran := deskOf(t, host)
	in := &claude.PreToolUseInput{ToolName: "mcp__my_desk__save", ToolInput: json.RawMessage(`{"a":1,"b":"good"}`)}
	in.ToolUseID = "id"
	if _, err := o.Hooks[0].Func(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	call(toolCall("id", `{"b":"good","a":1}`))
	if *ran != 1 || len(host.asked) != 1 {
		t.Fatalf("it ran %d times after %d decisions, want one and one", *ran, len(host.asked))
	}
	call(toolCall("id", `{"b":"good","a":1}`))
	if *ran != 2 || len(host.asked) != 2 || host.asked[1].ID == "id" {
		t.Errorf("again it ran %d times after %+v, want two, and a decision about another call", *ran, host.asked)
	}
}

// A call that no handler has allowed does not run because a message says so, however it is spelled.
func TestOwnCalls_UnapprovedCallIsDecided(t *testing.T) {
	for name, c := range map[string]struct {
		message, want string
		ran           int
	}{
		"allowed now":              {toolCall("x", `{"b":"good"}`), "ran", 1},
		"denied":                   {toolCall("x", `{"b":"evil"}`), `bad input`, 0},
		"without an id":            {toolCall("", `{}`), `bad input`, 0},
		"without an input":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"save"}}`, "bad input", 0},
		"two methods":              {`{"id":1,"method":"tools/call","method":"ping","params":{"name":"save"}}`, "ran", 0},
		"another spelling":         {`{"id":1,"method":"ping","Method":"tools/call","params":{"name":"save"}}`, "almost", 0},
		"another spelling of args": {`{"id":1,"method":"tools/call","params":{"name":"save","arguments":{"b":"good"},"Arguments":{"b":"evil"}}}`, "almost", 0},
		"several at once":          {`[` + toolCall("x", `{"b":"evil"}`) + `]`, "cannot unmarshal", 0},
		"no call":                  {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "ran", 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, call, ran := deskOf(t, &decidingHost{})
			if got := call(c.message); !strings.Contains(got, c.want) || *ran != c.ran {
				t.Errorf("got %s and %d runs, want %q and %d", got, *ran, c.want, c.ran)
			}
		})
	}
}

// A hook that allows a call which the host denies, or about which an approver is asked, does not approve it: the
// CLI would not run the call either. The approver has the last word.
func TestOwnCalls_AnotherHookDoesNotApproveWhatTheHostDenies(t *testing.T) {
	for name, x := range map[string]struct {
		verdict event.Verdict
		answer  claude.PermissionResult
		ran     int
	}{
		"denied":            {event.Deny, nil, 0},
		"to be asked":       {event.Ask, nil, 0},
		"asked, and denied": {event.Ask, claude.Deny{Message: "no"}, 0},
		"asked and allowed": {event.Ask, claude.Allow{}, 1},
		"allowed":           {event.Allow, nil, 1},
	} {
		for _, hostFirst := range []bool{true, false} {
			host := hostFunc(func(event.ToolCall) event.Decision { return event.Decision{Verdict: x.verdict} })
			o, call, ran := deskOf(t, host, claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
				return claude.AllowTool(), nil
			}))
			hooks := o.Hooks
			if !hostFirst {
				hooks = []claude.Hook{o.Hooks[1], o.Hooks[0]}
			}
			for _, h := range hooks {
				_, _ = h.Func(t.Context(), &claude.PreToolUseInput{ToolName: "mcp__my_desk__save", ToolUseID: "id", ToolInput: json.RawMessage(`{"a":1}`)})
			}
			if x.answer != nil {
				ask := &claude.PermissionRequest{ToolName: "mcp__my_desk__save", ToolUseID: "id", Input: json.RawMessage(`{"a":1}`)}
				_, _ = o.CanUseTool(context.WithValue(t.Context(), answerKey{}, x.answer), ask)
			}
			if call(toolCall("id", `{"a":1}`)); *ran != x.ran {
				t.Errorf("%s, the host first: %v: it ran %d times, want %d", name, hostFirst, *ran, x.ran)
			}
		}
	}
}

type answerKey struct{}

type hostFunc func(event.ToolCall) event.Decision

func (f hostFunc) Decide(_ context.Context, call event.ToolCall) event.Decision { return f(call) }

// Beside a Rewrite, only the new input is approved: the host has not judged the old one.
func TestOwnCalls_InputBeforeARewriteIsNotApproved(t *testing.T) {
	var judged []string
	host := hostFunc(func(c event.ToolCall) event.Decision {
		judged = append(judged, string(c.Input))
		if strings.Contains(string(c.Input), "old") {
			return event.Decision{Verdict: event.Deny}
		}
		return event.Decision{Verdict: event.Allow}
	})
	ran := 0
	base := &claude.Options{
		MCPServers: map[string]claude.MCPServer{"my.desk": &claude.MCPInProcess{Handle: func(context.Context, json.RawMessage) (json.RawMessage, error) {
			ran++
			return json.RawMessage(`{}`), nil
		}}},
		Hooks: []claude.Hook{claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
			return claude.AllowTool(), nil
		})},
	}
	o := optionsOf(t, base, agent.Request{Host: host, Hooks: &agent.Hooks{
		Rewrite: func(context.Context, event.ToolCall) (json.RawMessage, error) {
			return json.RawMessage(`{"a":"new"}`), nil
		},
	}})
	for _, h := range o.Hooks {
		if h.Event == claude.HookPreToolUse {
			_, _ = h.Func(t.Context(), &claude.PreToolUseInput{ToolName: "mcp__my_desk__save", ToolUseID: "id", ToolInput: json.RawMessage(`{"a":"old"}`)})
		}
	}
	desk := o.MCPServers["my.desk"].(*claude.MCPInProcess)
	_, _ = desk.Handle(t.Context(), json.RawMessage(toolCall("id", `{"a":"old"}`)))
	if ran != 0 {
		t.Errorf("the old input was used, and judged were %v", judged)
	}
	_, _ = desk.Handle(t.Context(), json.RawMessage(toolCall("id", `{"a":"new"}`)))
	if ran != 1 {
		t.Errorf("the new input was used %d times, want once", ran)
	}
}
