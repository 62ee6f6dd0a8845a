// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/launch"
)

// A client that waits for the result before it serves the CLI's questions waits for ever once a
// hook or a tool of its own is involved. A plain string prompt with both must just work.
func TestPitfall01_StringPromptWithHooksAndTools(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "echo hello"}),
		script.Call("mcp__desk__work", script.Input{}),
		script.Text("Both done."),
	)
	var hooked atomic.Int32
	opts := cli.Options(model)
	opts.Tools = []string{"Bash"}
	opts.AllowedTools = []string{"Bash", "mcp__desk__work"}
	opts.Hooks = []claude.Hook{onBash(func(context.Context, string) { hooked.Add(1) })}
	opts.MCPServers = toolServers(t, func(context.Context) (string, error) { return "worked", nil })
	end, _, err := collect(claude.Query(t.Context(), "do both", opts))
	if err != nil || end == nil || end.Answer.Result != "Both done." {
		t.Fatalf("end %+v, error %v; want the answer", end, err)
	}
	if text, isError, _ := model.ToolResult("mcp__desk__work"); isError || text != "worked" || hooked.Load() != 1 {
		t.Errorf("tool gave %q (error %t), hook ran %d times; want worked and 1", text, isError, hooked.Load())
	}
}

// A CLI may shake hands with in-process servers only after it has the prompt. If its input were
// closed behind the last prompt, that handshake and every call would fail.
func TestPitfall03_InputStaysOpenForTheMCPHandshake(t *testing.T) {
	lateHandshake := func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		s.State("running")
		for i, ask := range []string{
			mcpMessage(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"cli","version":"1"}}`),
			mcpMessage(2, "tools/list", `{}`),
			mcpMessage(3, "tools/call", callWork),
		} {
			if reply := s.Reply(s.Ask("mcp_message", ask)); !strings.Contains(string(reply), fmt.Sprintf(`"id":%d`, i+1)) || strings.Contains(string(reply), `"error":`) {
				s.Stderr("bad reply: " + string(reply))
				s.Exit(2)
			}
		}
		s.SendText("Served.")
		s.Result("Served.")
		s.State("idle")
		s.UntilEOF()
	}
	one := func(yield func(claude.Prompt, error) bool) { yield(claude.Text("go"), nil) }
	for name, run := range map[string]func(*claude.Options) iter.Seq2[claude.Message, error]{
		"string": func(o *claude.Options) iter.Seq2[claude.Message, error] { return claude.Query(t.Context(), "go", o) },
		"stream that ended": func(o *claude.Options) iter.Seq2[claude.Message, error] {
			return claude.QueryStream(t.Context(), one, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			opts := claudetest.ScriptCLI(t, lateHandshake).Options()
			opts.MCPServers = toolServers(t, func(context.Context) (string, error) { return "ok", nil })
			if end, _, err := collect(run(opts)); err != nil || end.Answer.Result != "Served." {
				t.Errorf("end %+v, error %v; want the answer Served.", end, err)
			}
		})
	}
}

// The first result is not the end when an agent works in the background: closing the input there
// makes the CLI refuse the agent's tools, and hooks are never asked about them.
func TestPitfall04_BackgroundAgentKeepsTheTurnOpen(t *testing.T) {
	cli := claudetest.CLI(t)
	firstResult := make(chan struct{})
	model := claudetest.NewModel(t,
		script.Func(func(*script.Request) script.Turn {
			select { // the agent is still at work when the main conversation has answered
			case <-firstResult:
			case <-t.Context().Done():
			}
			return script.Call("Bash", script.Input{"command": "echo by the agent"})
		}).When(script.IsSubagent(), script.LastUserText("look closely")),
		script.Text("Seen.").When(script.IsSubagent()).Always(),
		script.Call("Agent", script.Input{"description": "look", "prompt": "look closely", "subagent_type": "general-purpose"}),
		script.Text("Started it."),
		script.Text("It is done."),
	)
	var afterResult, hooked atomic.Bool
	opts := cli.Options(model)
	opts.Tools = []string{"Bash", "Agent"}
	opts.AllowedTools = []string{"Bash"}
	opts.Hooks = []claude.Hook{onBash(func(_ context.Context, command string) {
		hooked.Store(afterResult.Load() && command == "echo by the agent")
	})}
	var end *claude.TurnEnd
	ends := 0
	for m, err := range claude.Query(t.Context(), "delegate", opts) {
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *claude.ResultMessage:
			if afterResult.CompareAndSwap(false, true) {
				close(firstResult)
			}
		case *claude.TurnEnd:
			end = m
			ends++
		}
	}
	if !hooked.Load() {
		t.Error("the hook was not asked about the tool call after the first result")
	}
	if ends != 1 || end == nil || end.Forced {
		t.Fatalf("%d turn ends, last %+v; want one, not forced", ends, end)
	}
	if len(end.Results) != 2 || end.Answer != end.Results[0] || end.Answer.Result != "Started it." {
		t.Fatalf("%d results, answer %+v; want 2, the first being the answer", len(end.Results), end.Answer)
	}
	if origin := end.Results[1].Origin; origin == nil || origin.Kind == claude.OriginHuman {
		t.Errorf("origin of the second result %+v, want that of the agent's report", origin)
	}
}

// A shell in the background may never end. Waiting for it would hold a finished run open for ever.
func TestPitfall05_EndlessBackgroundWorkHasACeiling(t *testing.T) {
	task := func(kind string) string {
		return `{"type":"system","subtype":"task_started","task_id":"b1","description":"d","task_type":"` + kind + `","uuid":"u","session_id":"s"}`
	}
	for _, tc := range []struct {
		name, kind string
		reports    bool // the CLI reports its session state
		ceiling    time.Duration
		want       time.Duration
		forced     bool
	}{
		{"shell, state reported", "local_bash", true, 0, 10 * time.Minute, true},
		{"shell, no state", "local_bash", false, 0, 0, false},
		{"agent, no state", "local_agent", false, time.Minute, time.Minute, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
					s.Initialize("")
					s.Await("user")
					if tc.reports {
						s.State("running")
					}
					s.Line(task(tc.kind))
					s.Result("Running.")
					s.UntilEOF() // and never idle
				}).Options()
				opts.BackgroundCeiling = tc.ceiling
				started := time.Now()
				for m, err := range claude.Query(t.Context(), "run it", opts) {
					if err != nil {
						t.Fatal(err)
					}
					if end, ok := m.(*claude.TurnEnd); ok {
						if got := time.Since(started); got != tc.want || end.Forced != tc.forced || end.Answer == nil {
							t.Errorf("turn ended after %v, forced %t, answer %v; want %v, %t and an answer", got, end.Forced, end.Answer, tc.want, tc.forced)
						}
					}
				}
			})
		})
	}
}

// A fixed time after which the input is closed cuts long runs off in the middle.
func TestPitfall06_NoTimerEndsALongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			hello := s.Initialize("")
			s.Await("user")
			s.State("running")
			time.Sleep(24 * time.Hour) // the model thinks
			s.Reply(s.Ask("hook_callback", preToolUse(hookIDs(hello, claude.HookPreToolUse)[0], "ls")))
			s.Result("At last.")
			s.State("idle")
			s.UntilEOF()
		}).Options()
		opts.Hooks = []claude.Hook{onBash(func(ctx context.Context, _ string) {
			select {
			case <-time.After(3 * time.Hour): // a person is asked
			case <-ctx.Done():
				t.Error("the hook's context ended while it worked")
			}
		})}
		started := time.Now()
		end, _, err := collect(claude.Query(t.Context(), "take your time", opts))
		if err != nil || end.Answer.Result != "At last." {
			t.Errorf("end %+v, error %v; want the answer", end, err)
		}
		if got, want := time.Since(started), 27*time.Hour; got < want || got > want+time.Minute {
			t.Errorf("the run took %v, want %v", got, want)
		}
	})
}

// A stream of prompts that is empty or fails leaves the CLI waiting for a prompt that never comes.
func TestPitfall07_PromptStreamThatIsEmptyOrFails(t *testing.T) {
	broken := errors.New("the source of prompts broke")
	for _, tc := range []struct {
		name    string
		prompts iter.Seq2[claude.Prompt, error]
		want    error
	}{
		{"empty", func(func(claude.Prompt, error) bool) {}, nil},
		{"fails at once", func(yield func(claude.Prompt, error) bool) { yield(claude.Prompt{}, broken) }, broken},
		{"fails after a prompt", func(yield func(claude.Prompt, error) bool) {
			_ = yield(claude.Text("one"), nil) && yield(claude.Prompt{}, broken)
		}, broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t, script.Text("ok").Always())
			if _, _, err := collect(claude.QueryStream(t.Context(), tc.prompts, cli.Options(model))); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

// Permission questions must reach the callback whatever the form of the prompt.
func TestPitfall08_PermissionQuestionsWithAStringPrompt(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "touch made.txt"}), script.Text("Made."))
	opts := cli.Options(model)
	opts.Tools = []string{"Bash"}
	var asked atomic.Int32
	opts.CanUseTool = func(_ context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
		asked.Add(1)
		return claude.Allow{}, nil
	}
	if _, _, err := collect(claude.Query(t.Context(), "make it", opts)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(cli.Work, "made.txt")); err != nil || asked.Load() != 1 {
		t.Errorf("asked %d times, file: %v; want 1 and the file", asked.Load(), err)
	}
}

// A prompt given at the start must be sent, not only kept.
func TestPitfall09_ThePromptIsSent(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("Yes."))
	const prompt = "does \"this\" arrive\nin full? \u2028 ✓"
	if _, _, err := collect(claude.Query(t.Context(), prompt, cli.Options(model))); err != nil {
		t.Fatal(err)
	}
	if !model.SawText(prompt) {
		t.Error("the model never saw the prompt")
	}
}

func init() {
	processScripts["count lines"] = func(s *claudetest.ScriptSession) {
		s.Initialize("")
		prompts := 0
		for f, ok := s.Read(); ok; f, ok = s.Read() { // a torn line ends it with code 1
			switch f.Type {
			case "user":
				prompts++
			case "control_request":
				s.Answer(f, map[string]int{"prompts": prompts})
			}
		}
	}
	processScripts["die"] = func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Stderr("out of luck")
		s.Exit(3)
	}
	processScripts["deaf"] = func(s *claudetest.ScriptSession) {
		s.Initialize("")
		_ = os.Stdin.Close()
		s.SendText("I do not listen.")
		s.Hang()
	}
}

// Lines written at the same time must not run into each other: one torn line ends the CLI.
func TestPitfall10_ConcurrentWritesStayWhole(t *testing.T) {
	c := claudetest.Connect(t, asProcess(t, "count lines"))
	const writers, each = 8, 10
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				text := strings.Repeat(fmt.Sprintf("%d.%d ", i, j), 20_000) // more than a pipe holds
				if err := c.Send(t.Context(), claude.Prompt{Text: text, NoTurn: true}); err != nil {
					t.Errorf("Send: %v", err)
				}
				if _, err := c.Request(t.Context(), "report", nil); err != nil {
					t.Errorf("Request: %v", err)
				}
			}
		})
	}
	wg.Wait()
	reply, err := c.Request(t.Context(), "report", nil)
	var report struct{ Prompts int }
	if err == nil {
		err = json.Unmarshal(reply, &report)
	}
	if err != nil || report.Prompts != writers*each {
		t.Errorf("%d prompts arrived whole (%v), want %d", report.Prompts, err, writers*each)
	}
}

// Writing to a CLI that has ended, or that has closed its input, is an error that says so; it is
// neither a panic nor a signal to the program.
func TestPitfall11_WritingToAnEndedCLI(t *testing.T) {
	t.Run("ended", func(t *testing.T) {
		c := claudetest.Connect(t, asProcess(t, "die"))
		_, _, err := collect(c.Messages())
		wantDeath(t, "Messages", err, 3, "out of luck")
		wantDeath(t, "Send", c.Send(t.Context(), claude.Text("hello?")), 3, "out of luck")
		_, err = c.Request(t.Context(), "get_settings", nil)
		wantDeath(t, "Request", err, 3, "out of luck")
		_, err = c.Interrupt(t.Context())
		wantDeath(t, "Interrupt", err, 3, "out of luck")
		_, _, err = collect(c.Turn(t.Context(), claude.Text("hello?")))
		wantDeath(t, "Turn", err, 3, "out of luck")
	})
	t.Run("input closed by the CLI", func(t *testing.T) {
		opts := asProcess(t, "deaf")
		opts.Spawner = claude.HostSpawner{NoPIDNamespace: true} // no other process holds the pipe then
		c := claudetest.Connect(t, opts)
		next, stop := iter.Pull2(c.Messages())
		defer stop()
		if _, err, _ := next(); err != nil {
			t.Fatal(err)
		}
		if err := c.Send(t.Context(), claude.Text("hello?")); !errors.Is(err, launch.ErrProcessEnded) {
			t.Errorf("Send: %v, want ErrProcessEnded", err)
		}
	})
}

// wantDeath checks that err reports the death of the CLI with its reason.
func wantDeath(t testing.TB, what string, err error, code int, reason string) {
	t.Helper()
	var dead *claude.ProcessError
	if !errors.As(err, &dead) || dead.Status.Code != code || !strings.Contains(advice.Text(err), reason) {
		t.Errorf("%s: %v; want a ProcessError with code %d and %q", what, err, code, reason)
	}
}

// A CLI that does not read its input blocks the goroutine that writes to it. Closing must not wait for that
// write, and the write must come back.
func TestPitfall12_CloseBreaksABlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectScripted(t, func(s *claudetest.ScriptSession) {
			s.IgnoreSignals()
			s.Initialize("")
			s.Hang() // and reads nothing
		})
		sent := make(chan error, 1)
		go func() { sent <- c.Send(t.Context(), claude.Text(strings.Repeat("x", 1<<20))) }()
		synctest.Wait()
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Send(limited, claude.Text("behind it")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Send with a deadline behind a blocked one: %v, want the context's error", err)
		}
		started := time.Now()
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(started); took > 15*time.Second {
			t.Errorf("Close took %v, want at most 15 s", took)
		}
		if err := <-sent; !errors.Is(err, claude.ErrClosed) {
			t.Errorf("the blocked Send: %v, want ErrClosed", err)
		}
	})
}
