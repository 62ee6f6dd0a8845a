// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// connectScripted connects to a CLI that lives in memory and plays script.
func connectScripted(t testing.TB, script claudetest.CLIScript, change ...func(*claude.Options)) *claude.Client {
	t.Helper()
	opts := claudetest.ScriptCLI(t, script).Options()
	for _, f := range change {
		f(opts)
	}
	return claudetest.Connect(t, opts)
}

// asProcess returns options whose CLI is this test program, playing one of processScripts in a
// process of its own. The test fails if that process is left behind.
func asProcess(t *testing.T, name string) *claude.Options {
	t.Helper()
	if _, known := processScripts[name]; !known {
		t.Fatalf("no script %q", name)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cli, model := claudetest.CLI(t), claudetest.NewModel(t)
	opts := cli.Options(model)
	opts.CLIPath = self
	// A program with the race detector sleeps a second at its end by default.
	cli.SetEnv(opts, model, map[string]string{scriptVariable: name, "GORACE": "atexit_sleep_ms=0"})
	return opts
}

// hookIDs are the ids that a handshake gave to the hooks of an event.
func hookIDs(handshake claudetest.Frame, event claude.HookEvent) []string {
	var request struct {
		Hooks map[claude.HookEvent][]struct {
			IDs []string `json:"hookCallbackIds"`
		} `json:"hooks"`
	}
	_ = json.Unmarshal(handshake.Request, &request)
	var ids []string
	for _, matcher := range request.Hooks[event] {
		ids = append(ids, matcher.IDs...)
	}
	return ids
}

// preToolUse are the fields of a hook_callback for a call of Bash.
func preToolUse(hookID, command string) string {
	return fmt.Sprintf(`{"callback_id":%q,"tool_use_id":"t","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"t","tool_input":{"command":%q}}}`, hookID, command)
}

// onBash is a PreToolUse hook for Bash that allows every call after f has seen it.
func onBash(f func(ctx context.Context, command string)) claude.Hook {
	return claude.On("Bash", func(ctx context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		var input struct{ Command string }
		if err := json.Unmarshal(in.ToolInput, &input); err != nil {
			return nil, err
		}
		f(ctx, input.Command)
		return nil, nil
	})
}

// toolServers is an in-process server with one tool, as Options.MCPServers takes it. The model
// calls it mcp__desk__work.
func toolServers(t testing.TB, handler func(ctx context.Context) (string, error)) map[string]claude.MCPServer {
	t.Helper()
	tool := claude.MustTool("work", "Does the work.", func(ctx context.Context, _ struct{}) (claude.ToolResult, error) {
		text, err := handler(ctx)
		return claude.TextResult(text), err
	})
	tool.MaxResultSizeChars = 500_000
	server, err := claude.NewToolServer("desk", "1", nil, tool)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]claude.MCPServer{"desk": server.Server()}
}

// mcpMessage are the fields of an mcp_message for the server of toolServers.
func mcpMessage(id int, method, params string) string {
	return fmt.Sprintf(`{"server_name":"desk","message":{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}}`, id, method, params)
}

const callWork = `{"name":"work","arguments":{}}`

// A tether is a loopback connection held by a command that the CLI runs. It reports that the command
// runs, and that it is gone, without a look at the list of processes.
type tether struct {
	t        testing.TB
	listener *net.TCPListener
	conn     net.Conn
}

func newTether(t testing.TB) *tether {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	te := &tether{t: t, listener: listener}
	t.Cleanup(func() {
		_ = listener.Close()
		if te.conn != nil {
			_ = te.conn.Close()
		}
	})
	return te
}

// command is a shell command that holds the tether until it is killed.
func (te *tether) command() string {
	return fmt.Sprintf(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d; cat <&3'`, te.listener.Addr().(*net.TCPAddr).Port)
}

// awaitHeld waits until the command runs.
func (te *tether) awaitHeld() {
	te.t.Helper()
	_ = te.listener.SetDeadline(time.Now().Add(time.Minute))
	conn, err := te.listener.Accept()
	if err != nil {
		te.t.Errorf("the command never ran: %v", err)
		return
	}
	te.conn = conn
}

// awaitGone waits until the command has ended.
func (te *tether) awaitGone() {
	te.t.Helper()
	if te.conn == nil {
		return // awaitHeld has failed
	}
	_ = te.conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, te.conn); err != nil && !strings.Contains(advice.Text(err), "reset") {
		te.t.Errorf("a command of the CLI is left running: %v", err)
	}
}
