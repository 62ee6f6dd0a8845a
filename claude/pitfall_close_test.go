// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// closeEverywhere closes c from several goroutines, twice each, and checks that each call waited
// for the end.
func closeEverywhere(t *testing.T, c *claude.Client) {
	t.Helper()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2 {
				if err := c.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if _, err := c.Request(context.Background(), "anything", nil); !errors.Is(err, claude.ErrClosed) {
					t.Errorf("Request after Close: %v, want ErrClosed", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestClose_FromSeveralGoroutines(t *testing.T) {
	t.Run("before the first turn", func(t *testing.T) {
		cli, model := claudetest.CLI(t), claudetest.NewModel(t)
		c := claudetest.Connect(t, cli.Options(model))
		closeEverywhere(t, c)
		if _, _, err := collect(c.Turn(t.Context(), claude.Text("hello?"))); !errors.Is(err, claude.ErrClosed) {
			t.Errorf("Turn after Close: %v, want ErrClosed", err)
		}
		if _, messages, err := collect(c.Messages()); err != nil || len(messages) != 0 {
			t.Errorf("Messages after Close: %v, %v; want none", messages, err)
		}
	})
	t.Run("in the middle of a turn", func(t *testing.T) {
		cli, model := claudetest.CLI(t), claudetest.NewModel(t, script.Hang())
		c := claudetest.Connect(t, cli.Options(model))
		ended := make(chan error, 1)
		go func() {
			_, _, err := collect(c.Turn(t.Context(), claude.Text("wait")))
			ended <- err
		}()
		if err := model.WaitRequests(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		closeEverywhere(t, c)
		if err := <-ended; !errors.Is(err, claude.ErrClosed) && !errors.Is(err, claude.ErrInterrupted) {
			t.Errorf("the turn ended with %v, want ErrInterrupted or ErrClosed", err)
		}
	})
}

// A hook that closes the client waits for itself. That must end, within the limit that Close has.
func TestClose_InsideAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *claude.Client
		ready := make(chan struct{})
		closed := make(chan time.Duration, 1)
		c = connectScripted(t, func(s *claudetest.ScriptSession) {
			hook := hookIDs(s.Initialize(""), claude.HookPreToolUse)[0]
			s.Await("user")
			s.State("running")
			s.Ask("hook_callback", preToolUse(hook, "ls"))
			s.UntilEOF()
		}, func(o *claude.Options) {
			o.Hooks = []claude.Hook{onBash(func(context.Context, string) {
				<-ready
				started := time.Now()
				if err := c.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				closed <- time.Since(started)
			})}
		})
		close(ready)
		if _, _, err := collect(c.Turn(t.Context(), claude.Text("go"))); !errors.Is(err, claude.ErrClosed) {
			t.Errorf("the turn ended with %v, want ErrClosed", err)
		}
		if took := <-closed; took > 15*time.Second {
			t.Errorf("Close took %v, want at most 15 s", took)
		}
	})
}

// Closing inside the loop over messages, or inside the callback for standard error, is no different
// from closing elsewhere.
func TestClose_InsideTheLoopAndTheStderrCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectScripted(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Turn("one")
			s.UntilEOF()
		})
		for m, err := range c.Turn(t.Context(), claude.Text("go")) {
			if err != nil && !errors.Is(err, claude.ErrClosed) {
				t.Errorf("error %v", err)
			}
			if _, ok := m.(*claude.AssistantMessage); ok {
				if err := c.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var c *claude.Client
		ready, closed := make(chan struct{}), make(chan struct{})
		c = connectScripted(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Stderr("close me")
			s.UntilEOF()
		}, func(o *claude.Options) {
			o.Stderr = func(string) {
				<-ready
				_ = c.Close()
				close(closed)
			}
		})
		close(ready)
		<-closed
	})
}
