// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// toolServer is an in-process server of some tools.
func toolServer(t testing.TB, tools ...claude.Tool) *claude.ToolServer {
	t.Helper()
	s, err := claude.NewToolServer("test", "1", nil, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fixedTool is a tool that gives a fixed result.
func fixedTool(name string, result claude.ToolResult) claude.Tool {
	return claude.MustTool(name, "", func(context.Context, struct{}) (claude.ToolResult, error) { return result, nil })
}

// callOf is a tools/call message.
func callOf(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, id, tool)
}

// askMCP sends a message to a server of the host.
func askMCP(s *claudetest.ScriptSession, server, message string) (id string) {
	return s.Ask("mcp_message", `{"server_name":"`+server+`","message":`+message+`}`)
}

// logTo is a logger and what it wrote.
func logTo() (*slog.Logger, *lockedBuffer) {
	b := &lockedBuffer{}
	return slog.New(slog.NewTextHandler(b, nil)), b
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A message without a method, or no message at all, brings down a client that takes the field for
// granted. It must be answered like any other request, and the conversation must go on.
func TestPitfall36_MCPMessageWithoutMethod(t *testing.T) {
	odd := []string{
		`{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":7}`, `{}`, `null`, `[]`, `"x"`, `{"jsonrpc":"2.0","id":3,"method":5}`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","method":"tools/call"}`, `{"jsonrpc":"2.0","id":4,"method":"tools/call"}`,
	}
	answers := make(chan string, len(odd)+1)
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		for _, m := range odd {
			answers <- m + " -> " + string(s.Reply(askMCP(s, "tools", m)))
		}
		answers <- string(s.Reply(askMCP(s, "tools", callOf(9, "ok"))))
		s.Turn("still here")
		s.UntilEOF()
	})
	opts := cli.Options()
	opts.MCPServers = map[string]claude.MCPServer{"tools": toolServer(t, fixedTool("ok", claude.TextResult("fine"))).Server()}
	c := claudetest.Connect(t, opts)
	for range odd {
		if got := <-answers; !strings.Contains(got, `"mcp_response"`) || strings.Contains(got, "panic") {
			t.Errorf("%s: want an MCP answer and no panic", got)
		}
	}
	if got := <-answers; !strings.Contains(got, `"fine"`) {
		t.Errorf("a good call after the odd ones got %s", got)
	}
	if end, _ := turn(t, c, "hello"); end.Answer.Result != "still here" {
		t.Errorf("the conversation went on with %q", end.Answer.Result)
	}
}

// Requests of different servers carry the same ids, and one server may have several calls at once.
// Where calls are kept by id alone, an answer or a cancellation reaches the wrong one.
func TestPitfall37_ParallelCallsAndEqualIDs(t *testing.T) {
	started := make(chan string, 3)
	release := make(chan struct{})
	wait := func(server string) *claude.MCPInProcess {
		return toolServer(t, claude.MustTool("wait", "", func(ctx context.Context, _ struct{}) (claude.ToolResult, error) {
			started <- server
			select {
			case <-ctx.Done():
				return claude.ToolResult{}, ctx.Err()
			case <-release:
				return claude.TextResult("released on " + server), nil
			}
		})).Server()
	}
	answers := make(chan [3]string, 1)
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		first, other, second := askMCP(s, "one", callOf(2, "wait")), askMCP(s, "two", callOf(2, "wait")), askMCP(s, "one", callOf(3, "wait"))
		for range 3 {
			<-started // all three at once, or this waits for ever
		}
		s.Reply(askMCP(s, "one", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`))
		cancelled := string(s.Reply(first))
		close(release)
		answers <- [3]string{cancelled, string(s.Reply(other)), string(s.Reply(second))}
		s.UntilEOF()
	})
	opts := cli.Options()
	opts.MCPServers = map[string]claude.MCPServer{"one": wait("one"), "two": wait("two")}
	claudetest.Connect(t, opts)
	got := <-answers
	if !strings.Contains(got[0], `"isError":true`) {
		t.Errorf("the cancelled call answered %s", got[0])
	}
	if !strings.Contains(got[1], "released on two") || !strings.Contains(got[1], `"id":2`) {
		t.Errorf("the call with the same id on the other server answered %s", got[1])
	}
	if !strings.Contains(got[2], "released on one") || !strings.Contains(got[2], `"id":3`) {
		t.Errorf("the other call on the same server answered %s", got[2])
	}
}

// A tool that does not heed its context keeps a client from closing, for ever. Close must give it a
// grace and then go without it, and report which call was left.
func TestPitfall38_BlockedToolDoesNotHoldUpClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, release := make(chan struct{}), make(chan struct{})
		deaf := claude.MustTool("deaf", "", func(context.Context, struct{}) (claude.ToolResult, error) {
			close(started)
			<-release
			return claude.TextResult("too late"), nil
		})
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			askMCP(s, "tools", callOf(1, "deaf"))
			s.UntilEOF()
		})
		opts := cli.Options()
		opts.MCPServers = map[string]claude.MCPServer{"tools": toolServer(t, deaf).Server()}
		c, err := claude.Connect(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		<-started
		began := time.Now()
		err = c.Close()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Close took %s", took)
		}
		if err == nil || !strings.Contains(advice.Text(err), "tools#1") {
			t.Errorf("Close returned %v, want the call that was left", err)
		}
		close(release)
	})
}

// A panic in a tool ends a program that does not guard its handlers. The model must read that the
// call failed, and the next call must work.
func TestPitfall39_PanicInATool(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Reply(script.ToolCall{Name: "mcp__tools__explode"}, script.ToolCall{Name: "mcp__tools__fail"}),
		script.Call("mcp__tools__ok", nil), script.Text("Survived."))
	log, written := logTo()
	server, err := claude.NewToolServer("test", "1", &claude.ToolServerOptions{Logger: log},
		claude.MustTool("explode", "", func(context.Context, struct{}) (claude.ToolResult, error) { panic("kaboom") }),
		claude.MustTool("fail", "", func(context.Context, struct{}) (claude.ToolResult, error) {
			return claude.ToolResult{}, fmt.Errorf("the disk is full")
		}),
		fixedTool("ok", claude.TextResult("fine")))
	if err != nil {
		t.Fatal(err)
	}
	opts := withTools(cli.Options(model), map[string]claude.MCPServer{"tools": server.Server()})
	end, _ := turn(t, claudetest.Connect(t, opts), "go")
	if end.Answer.Result != "Survived." {
		t.Errorf("answer %q", end.Answer.Result)
	}
	for tool, want := range map[string]string{"explode": "kaboom", "fail": "the disk is full"} {
		if text, failed, _ := model.ToolResult("mcp__tools__" + tool); !failed || !strings.Contains(text, want) {
			t.Errorf("the model saw %q (failed: %t) of %s, want a failure with %q", text, failed, tool, want)
		}
	}
	if text, failed, _ := model.ToolResult("mcp__tools__ok"); failed || text != "fine" {
		t.Errorf("the call after the panic gave %q", text)
	}
	if !strings.Contains(written.String(), "kaboom") || !strings.Contains(written.String(), "stack=") {
		t.Errorf("the log has no stack of the panic: %s", written)
	}
}

// withTools lets the model use the servers, and nothing else, without questions.
func withTools(opts *claude.Options, servers map[string]claude.MCPServer) *claude.Options {
	opts.Tools = []string{}
	opts.MCPServers = servers
	for name := range servers {
		opts.AllowedTools = append(opts.AllowedTools, "mcp__"+name)
	}
	return opts
}

// The mark of a failed call gets lost on the way in some clients; and where a result has both text
// and a structured part, the model is shown the structured part alone. Both are as documented on
// ToolResult, with images beside them.
func TestPitfall40_FailuresAndStructuredContent(t *testing.T) {
	for name, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(name, func(t *testing.T) {
			cli := get(t)
			model := claudetest.NewModel(t, script.Reply(script.ToolCall{Name: "mcp__tools__broken"}, script.ToolCall{Name: "mcp__tools__both"},
				script.ToolCall{Name: "mcp__tools__picture"}), script.Text("Seen."))
			server := toolServer(t,
				fixedTool("broken", claude.ErrorResult("it broke")),
				fixedTool("both", claude.ToolResult{Content: []claude.ToolContent{claude.ToolText("plain words")}, Structured: json.RawMessage(`{"x":5}`)}),
				fixedTool("picture", claude.ImageResult(tinyPNG, "image/png")))
			_, messages := turn(t, claudetest.Connect(t, withTools(cli.Options(model), map[string]claude.MCPServer{"tools": server.Server()})), "go")
			if text, failed, _ := model.ToolResult("mcp__tools__broken"); !failed || text != "it broke" {
				t.Errorf("the model saw %q, failed %t; want a failure, in the tool's words", text, failed)
			}
			if text, failed, _ := model.ToolResult("mcp__tools__both"); failed || text != `{"x":5}` {
				t.Errorf("the model saw %q of a result with both parts, want the structured one", text)
			}
			results := model.LastRequest().ToolResults("mcp__tools__picture")
			if len(results) != 1 || !hasPart(results[0].Content, "image") {
				t.Errorf("the model saw no image: %+v", results)
			}
			if !inToolUseResult(messages, `"structuredContent":{"x":5}`) || inToolUseResult(messages, "plain words") {
				t.Errorf("our messages do not carry the structured part alone")
			}
		})
	}
}

func hasPart(parts script.Parts, kind string) bool {
	for _, p := range parts {
		if p.Type == kind {
			return true
		}
	}
	return false
}

func inToolUseResult(messages []claude.Message, text string) bool {
	for _, m := range of[*claude.UserMessage](messages) {
		if strings.Contains(string(m.ToolUseResult), text) {
			return true
		}
	}
	return false
}

// Large results are put into a file and the model sees a short preview, which a tool that means its
// result to be read in full must be able to prevent.
func TestPitfall41_LargeResultsReachTheModel(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(script.ToolCall{Name: "mcp__tools__whole"}, script.ToolCall{Name: "mcp__tools__plain"}), script.Text("Read."))
	large := claude.TextResult(strings.Repeat("0123456789", 42_000))
	whole := fixedTool("whole", large)
	whole.MaxResultSizeChars = 500_000
	server := toolServer(t, whole, fixedTool("plain", large))
	turn(t, claudetest.Connect(t, withTools(cli.Options(model), map[string]claude.MCPServer{"tools": server.Server()})), "go")
	if text, failed, _ := model.ToolResult("mcp__tools__whole"); failed || len(text) != 420_000 {
		t.Errorf("the model saw %d characters (failed: %t), want 420,000: %.200s", len(text), failed, text)
	}
	if text, _, ok := model.ToolResult("mcp__tools__plain"); !ok || len(text) >= 420_000 {
		t.Errorf("without the limit raised the model saw %d characters, so that this test shows nothing", len(text))
	}
}
