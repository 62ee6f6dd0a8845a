// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// The program may add its server while the CLI runs. Until then, and after, a settings file may not
// put another one in its place.
func TestServers_SettingsFileCannotReplaceALaterServer(t *testing.T) {
	opts := new(claude.Options)
	bind(t, gate.NewEngine(deskGate(), nil), opts)
	for i, tt := range []struct {
		source string
		want   claude.ToolDecision
	}{{"sdk", claude.DecideAllow}, {"", claude.DecideAllow}, {"project", claude.DecideDeny}, {"user", claude.DecideDeny}, {"plugin", claude.DecideDeny}} {
		in := &claude.PreToolUseInput{
			ToolName: "mcp__my_desk__save", ToolUseID: fmt.Sprint(i), ToolInput: json.RawMessage(`{}`),
			MCPServer: claude.HookMCPServer{Name: "my_desk", Source: tt.source},
		}
		out, err := opts.Hooks[0].Func(t.Context(), in)
		if got, ok := out.(*claude.PreToolUseOutput); err != nil || !ok || got.PermissionDecision != tt.want {
			t.Errorf("source %q: %+v, %v; want %s", tt.source, out, err, tt.want)
		}
	}
}

// The hook and the callback know the server of "mcp__a__b__save", and ask once between them.
func TestPermissionCallback_IdentifiesTheSameToolAsTheHook(t *testing.T) {
	asked := 0
	opts := new(claude.Options)
	bind(t, gate.NewEngine(gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.Default(event.Ask)), &gate.EngineOptions{
		Approver: gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
			asked++
			return gate.Answer{Verdict: event.Allow}, nil
		}),
	}), opts)
	in := &claude.PreToolUseInput{ToolName: "mcp__a__b__save", ToolUseID: "1", ToolInput: json.RawMessage(`{}`), MCPServer: claude.HookMCPServer{Name: "a__b", Source: "user"}}
	if _, err := opts.Hooks[0].Func(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	req := &claude.PermissionRequest{ToolName: in.ToolName, ToolUseID: "1", Input: in.ToolInput, MCPServer: &claude.PermissionServer{Name: "a__b", Source: "user"}}
	if got, err := opts.CanUseTool(t.Context(), req); err != nil || asked != 1 {
		t.Errorf("got %+v, %v after %d questions; want one", got, err, asked)
	}
}
