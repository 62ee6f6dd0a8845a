// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func init() {
	processScripts["flood stderr"] = func(s *claudetest.ScriptSession) {
		flood := strings.Repeat("noise ", 1000)
		for range 1000 { // 6 MB
			s.Stderr(flood)
		}
		s.Initialize("")
		s.Await("user")
		for range 1000 {
			s.Stderr(flood)
		}
		s.Result("Loud.")
		s.Await("user")
		s.Stderr("the last line")
		s.Exit(7)
	}
	processScripts["stubborn"] = func(s *claudetest.ScriptSession) {
		s.IgnoreSignals()
		s.Initialize("")
		s.Hang()
	}
	processScripts["silent"] = func(s *claudetest.ScriptSession) {
		for _, ok := s.Read(); ok; _, ok = s.Read() {
		}
	}
	processScripts["host"] = hostProgram
}

// A CLI whose standard error has no reader hangs as soon as the pipe is full.
func TestPitfall21_StderrIsAlwaysDrained(t *testing.T) {
	c := claudetest.Connect(t, asProcess(t, "flood stderr"))
	if end, _ := turn(t, c, "speak"); end.Answer.Result != "Loud." {
		t.Errorf("answer %q, want Loud.", end.Answer.Result)
	}
	_, _, err := collect(c.Turn(t.Context(), claude.Text("end")))
	wantDeath(t, "Turn", err, 7, "the last line")
	var dead *claude.ProcessError
	if errors.As(err, &dead) && len(dead.StderrTail) > 8<<10 {
		t.Errorf("the error carries %d bytes of standard error", len(dead.StderrTail))
	}
}

// A callback for standard error that panics must not stop the reading of it, and a line without an
// end must not grow without bounds.
func TestPitfall22_StderrCallbackPanicsAndEndlessLines(t *testing.T) {
	var mu sync.Mutex
	var got []string
	c := connectScripted(t, func(s *claudetest.ScriptSession) {
		s.Stderr("first")
		s.Stderr(strings.Repeat("x", 10<<20))
		s.Stderr("last\r")
		s.Initialize("")
		s.Exit(0)
	}, func(o *claude.Options) {
		o.Stderr = func(line string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, line)
			panic("callback of the test")
		}
	})
	if _, _, err := collect(c.Messages()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) < 3 || got[0] != "first" || got[len(got)-1] != "last" {
		t.Fatalf("%d lines, want first, the long one in pieces, last", len(got))
	}
	total := 0
	for _, piece := range got[1 : len(got)-1] {
		total += len(piece)
		if len(piece) > 1<<20 {
			t.Errorf("a piece of %d bytes", len(piece))
		}
	}
	if total != 10<<20 {
		t.Errorf("the pieces have %d bytes, want %d", total, 10<<20)
	}
}

// After a cancellation, the process and the command that it was running have ended when the call
// returns.
func TestPitfall23_CancelLeavesNoProcess(t *testing.T) {
	t.Run("while a command runs", func(t *testing.T) {
		cli, held := claudetest.CLI(t), newTether(t)
		model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": held.command()}))
		opts := cli.Options(model)
		opts.PermissionMode = claude.ModeBypassPermissions
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			held.awaitHeld()
			cancel()
		}()
		if _, _, err := collect(claude.Query(ctx, "run it", opts)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
		held.awaitGone()
	})
	t.Run("during the handshake", func(t *testing.T) {
		opts := asProcess(t, "silent")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := claude.Connect(ctx, opts); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
	})
}

// A CLI may ignore the polite signal. It is killed then, after a bounded time.
func TestPitfall24_StubbornCLIIsKilled(t *testing.T) {
	t.Run("in memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := connectScripted(t, processScripts["stubborn"])
			started := time.Now()
			if err := c.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if took := time.Since(started); took > 10*time.Second {
				t.Errorf("Close took %v, want less than 10 s", took)
			}
		})
	})
	t.Run("process", func(t *testing.T) {
		c := claudetest.Connect(t, asProcess(t, "stubborn"))
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// A signal sent at once cuts off the last output of the CLI. It first gets the end of its input
// and time to finish, and its output in that time is still delivered.
func TestPitfall25_LastOutputIsReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectScripted(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			for f, ok := s.Read(); ok; f, ok = s.Read() {
				if f.Type == "user" {
					s.Result("First.")
				}
			}
			time.Sleep(1500 * time.Millisecond) // it writes its transcript
			s.SendText("Goodbye.")
		})
		turn(t, c, "hello")
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		_, messages, err := collect(c.Messages())
		if replies := of[*claude.AssistantMessage](messages); err != nil || len(replies) != 1 || replies[0].Text() != "Goodbye." {
			t.Errorf("after Close: %v, %v; want the last words", messages, err)
		}
	})
}

// hostProgram is a program that uses the client and never closes it. Its environment, but for the
// variable that chose it, is the CLI's.
func hostProgram(s *claudetest.ScriptSession) {
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	path, prompt, _ := strings.Cut(strings.TrimSpace(line), "\t")
	vars := map[string]string{}
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); name != scriptVariable {
			vars[name] = value
		}
	}
	opts := &claude.Options{CLIPath: path, Env: claude.ExactEnv(vars), SettingSources: []string{}, StrictMCP: true, PermissionMode: claude.ModeBypassPermissions}
	for _, err := range claude.Query(context.Background(), prompt, opts) {
		if err != nil {
			s.Stderr(err.Error())
			s.Exit(1)
		}
	}
}

// A program that is killed cannot clean up. The CLI and what it runs must end with it all the same.
func TestPitfall26_KilledHostLeavesNothing(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		t.Skip("commands of the CLI can outlive a killed program on this system; docs/lifecycle.md says so")
	}
	cli, held := claudetest.CLI(t), newTether(t)
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": held.command()}))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(self)
	host.Dir = cli.Work
	host.Stdin = strings.NewReader(cli.Path + "\tgo\n")
	host.Stderr = os.Stderr
	for name, value := range cli.Env(model.BaseURL()) {
		host.Env = append(host.Env, name+"="+value)
	}
	host.Env = append(host.Env, scriptVariable+"=host")
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	held.awaitHeld()
	if err := host.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = host.Wait() // killed
	held.awaitGone()
}

// Killing the CLI alone leaves the commands running that it had started. A kill reaches them too.
func TestPitfall27_KillReachesGrandchildren(t *testing.T) {
	cli, held := claudetest.CLI(t), newTether(t)
	model := claudetest.NewModel(t, script.Reply(
		script.ToolCall{Name: "Bash", Input: script.Input{"command": held.command(), "run_in_background": true}},
		script.ToolCall{Name: "mcp__desk__work"},
	), script.Text("Done.").Always())
	opts := cli.Options(model)
	opts.Tools = []string{"Bash"}
	opts.PermissionMode = claude.ModeBypassPermissions
	opts.MaxLineBytes = 200_000 // a line beyond it has the CLI killed at once
	opts.MCPServers = toolServers(t, func(context.Context) (string, error) {
		held.awaitHeld()
		return strings.Repeat("large ", 60_000), nil
	})
	_, _, err := collect(claude.Query(t.Context(), "go", opts))
	var tooLarge *claude.MessageTooLargeError
	if !errors.As(err, &tooLarge) {
		t.Fatalf("error %v, want a MessageTooLargeError", err)
	}
	held.awaitGone()
}
