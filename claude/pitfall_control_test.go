// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// The CLI asks questions of its own before it answers the handshake. A client that waits for that
// answer before it serves them waits for ever.
func TestPitfall32_RequestsBeforeTheHandshakeIsAnswered(t *testing.T) {
	t.Run("scripted", func(t *testing.T) {
		c := connectScripted(t, func(s *claudetest.ScriptSession) {
			hello := s.Await("control_request")
			s.Reply(s.Ask("mcp_message", mcpMessage(1, "tools/list", `{}`)))
			s.Reply(s.Ask("hook_callback", preToolUse(hookIDs(hello, claude.HookPreToolUse)[0], "ls")))
			s.Reply(s.Ask("something_new", `{}`))
			s.Answer(hello, map[string]any{"hooks_applied": true})
			s.Turn("Hello.")
			s.UntilEOF()
		}, func(o *claude.Options) {
			o.MCPServers = toolServers(t, func(context.Context) (string, error) { return "", nil })
			o.Hooks = []claude.Hook{onBash(func(context.Context, string) {})}
		})
		turn(t, c, "hello")
	})
	t.Run("real", func(t *testing.T) {
		cli, model := claudetest.CLI(t), claudetest.NewModel(t)
		var mu sync.Mutex
		var methods []string
		server := toolServers(t, func(context.Context) (string, error) { return "", nil })["desk"].(*claude.MCPInProcess)
		opts := cli.Options(model)
		opts.MCPServers = map[string]claude.MCPServer{"desk": &claude.MCPInProcess{ // without a manifest the CLI has to ask
			Handle: func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error) {
				var head struct{ Method string }
				_ = json.Unmarshal(msg, &head)
				mu.Lock()
				methods = append(methods, head.Method)
				mu.Unlock()
				return server.Handle(ctx, msg)
			},
		}}
		claudetest.Connect(t, opts)
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(methods, "initialize") {
			t.Errorf("until the handshake was answered the server received %q, want initialize", methods)
		}
	})
}

// The CLI takes questions back, for example when a turn is interrupted. The callback must be
// notified, and an answer must not be sent any more.
func TestPitfall33_CancelledRequests(t *testing.T) {
	t.Run("scripted", func(t *testing.T) {
		ended := make(chan error, 1)
		answered := make(chan bool, 1)
		c := connectScripted(t, func(s *claudetest.ScriptSession) {
			hello := s.Initialize("")
			id := hookIDs(hello, claude.HookPreToolUse)[0]
			withdrawn := s.Ask("hook_callback", preToolUse(id, "wait"))
			s.JSON(map[string]string{"type": "control_cancel_request", "request_id": withdrawn})
			s.Reply(s.Ask("hook_callback", preToolUse(id, "go")))
			report := s.Await("control_request") // sent when the first hook has returned
			s.Answer(report, map[string]any{})
			for f, ok := s.Read(); ok; f, ok = s.Read() {
				if strings.Contains(string(f.Response), withdrawn) {
					answered <- true
				}
			}
			close(answered)
		}, func(o *claude.Options) {
			o.Hooks = []claude.Hook{onBash(func(ctx context.Context, command string) {
				if command == "wait" {
					<-ctx.Done()
					ended <- ctx.Err()
				}
			})}
		})
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the context of the withdrawn hook ended with %v", err)
		}
		if _, err := c.Request(t.Context(), "report", nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if <-answered {
			t.Error("the withdrawn request was answered")
		}
	})
	t.Run("real", func(t *testing.T) {
		cli := claudetest.CLI(t)
		model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "touch x"}), script.Text("Still here."))
		asked, ended := make(chan struct{}), make(chan struct{})
		opts := cli.Options(model)
		opts.Tools = []string{"Bash"}
		opts.CanUseTool = func(ctx context.Context, _ *claude.PermissionRequest) (claude.PermissionResult, error) {
			close(asked)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}
		c := claudetest.Connect(t, opts)
		go func() {
			<-asked
			_, _ = c.Interrupt(t.Context())
		}()
		_, _, err := collect(c.Turn(t.Context(), claude.Text("touch it")))
		if !errors.Is(err, claude.ErrInterrupted) {
			t.Errorf("the turn ended with %v, want ErrInterrupted", err)
		}
		<-ended
		turn(t, c, "and now?")
	})
}

// Cancellations cross answers on their way, name unknown requests, and requests come
// twice. All of that happens once or not at all.
func TestPitfall34_CrossingCancellationsAndDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		stubborn, answered := make(chan struct{}), make(chan struct{})
		replies := make(chan string, 100)
		ask := func(s *claudetest.ScriptSession, request, hook, command string) {
			s.Line(`{"type":"control_request","request_id":"` + request + `","request":{"subtype":"hook_callback",` + preToolUse(hook, command)[1:] + `}`)
		}
		cancel := func(s *claudetest.ScriptSession, id string) {
			s.JSON(map[string]string{"type": "control_cancel_request", "request_id": id})
		}
		c := connectScripted(t, func(s *claudetest.ScriptSession) {
			hook := hookIDs(s.Initialize(""), claude.HookPreToolUse)[0]
			cancel(s, "never-asked")
			s.Line(`{"type":"control_cancel_request"}`)
			s.Line(`{"type":"control_response","response":{"subtype":"success","request_id":"never-sent","response":{}}}`)
			ask(s, "twice", hook, "slow")
			ask(s, "twice", hook, "slow")
			s.Reply("twice")
			cancel(s, "twice") // too late
			cancel(s, "twice")
			ask(s, "again", hook, "stubborn")
			cancel(s, "again")
			ask(s, "again", hook, "slow") // the same id, while the first is still running
			asked := time.Now()
			synctest.Wait() // until the host has read all that
			close(stubborn)
			s.Reply("again")
			if time.Since(asked) < time.Second {
				replies <- "that of the cancelled request, to the one that has its id now"
			}
			close(answered)
			for f, ok := s.Read(); ok; f, ok = s.Read() {
				switch f.Type {
				case "control_response":
					replies <- string(f.Response)
				case "control_request":
					s.Answer(f, map[string]any{})
				}
			}
		}, func(o *claude.Options) {
			o.Hooks = []claude.Hook{onBash(func(_ context.Context, command string) {
				calls.Add(1)
				switch command {
				case "slow":
					time.Sleep(time.Second)
				case "stubborn":
					<-stubborn
				}
			})}
		})
		<-answered
		synctest.Wait()
		if _, err := c.Request(t.Context(), "anything", nil); err != nil {
			t.Errorf("after all that: %v", err)
		}
		if got, want := calls.Load(), int32(3); got != want {
			t.Errorf("the hook ran %d times, want %d", got, want)
		}
		if len(replies) > 0 {
			t.Errorf("a wrong answer: %s", <-replies)
		}
	})
}

// A tool call of an in-process server is cancelled by a notification of its protocol alone; the
// request that carries the call is never taken back.
func TestPitfall35_InterruptEndsAToolsContext(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("mcp__desk__work", script.Input{}), script.Text("Still here."))
	running, ended := make(chan struct{}), make(chan error, 1)
	opts := cli.Options(model)
	opts.Tools = []string{"Read"}
	opts.AllowedTools = []string{"mcp__desk__work"}
	opts.MCPServers = toolServers(t, func(ctx context.Context) (string, error) {
		close(running)
		<-ctx.Done()
		ended <- ctx.Err()
		return "", ctx.Err()
	})
	c := claudetest.Connect(t, opts)
	go func() {
		<-running
		_, _ = c.Interrupt(t.Context())
	}()
	if _, _, err := collect(c.Turn(t.Context(), claude.Text("work"))); !errors.Is(err, claude.ErrInterrupted) {
		t.Errorf("the turn ended with %v, want ErrInterrupted", err)
	}
	select { // before the client is closed, which would end it too
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the tool's context ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the tool's context did not end")
	}
	turn(t, c, "and now?")
}
