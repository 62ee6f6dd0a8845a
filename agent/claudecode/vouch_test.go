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
	"github.com/drover-agents/drover/tool"
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
func deskOf(t *testing.T, host agent.Host) (o *claude.Options, call func(message string) string, ran *int) {
	t.Helper()
	ran = new(int)
	server := &claude.MCPInProcess{Handle: func(_ context.Context, msg json.RawMessage) (json.RawMessage, error) {
		if strings.Contains(strings.ToLower(string(msg)), `"tools/call"`) {
			*ran++
		}
		return json.RawMessage(`{"result":"ran"}`), nil
	}}
	o = &claude.Options{MCPServers: map[string]claude.MCPServer{"my.desk": server}, Hooks: []claude.Hook{tool.Hook(host)}}
	newVouchers(host, "/work").observe(o)
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
func TestAnAllowedCallRunsOnce(t *testing.T) {
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

// What nobody has allowed does not run because a message says so, however it is spelled.
func TestACallThatNobodyAllowedIsDecided(t *testing.T) {
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
