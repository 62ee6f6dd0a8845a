// SPDX-License-Identifier: Apache-2.0

package drovertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// An evaluation whose time is over is not begun.
func testDeadlineBefore(t *testing.T, s *suite) {
	a, m := s.New(t)
	own := session.New(nil)
	_, err := drover.Evaluate(t.Context(), a, promptOf[prompt.Text](t), &drover.Options{Session: own, Deadline: guard.FromNow(-time.Second)})
	if !errors.Is(err, guard.ErrDeadlineExceeded) || m.Calls() != 0 {
		t.Errorf("the error is %v after %d calls of the model", err, m.Calls())
	}
	if executed, found := session.Query[session.PromptExecuted](own).Latest(); !found || executed.Error == "" {
		t.Errorf("the end is %+v", executed)
	}
}

func testDeadlineMeanwhile(t *testing.T, s *suite) {
	a, _ := s.New(t, waits())
	_, err := drover.Evaluate(t.Context(), a, promptOf[prompt.Text](t), &drover.Options{Deadline: guard.FromNow(3 * time.Second)})
	if !errors.Is(err, guard.ErrDeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

func testCancel(t *testing.T, s *suite) {
	a, _ := s.New(t, waits())
	ctx, cancel := context.WithCancel(t.Context())
	run := drover.Stream(ctx, a, promptOf[prompt.Text](t), nil)
	for e := range run.Events() {
		if e.Kind == event.KindInit {
			cancel()
		}
	}
	cancel()
	if _, err := run.Response(); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// A spent budget ends the run, and the error is that of the budget.
func testBudgets(t *testing.T, s *suite) {
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 5_000})
	a, _ := s.New(t, costing(4_000, calls(s.Native.Shell("true"))), costing(4_000, calls(s.Native.Shell("true"))), waits(), waits())
	_, err := drover.Evaluate(t.Context(), a, promptOf[prompt.Text](t), &drover.Options{Tracker: tracker})
	if !errors.Is(err, guard.ErrBudgetExhausted) {
		t.Errorf("the error is %v", err)
	}
	if got := tracker.Consumed().TotalTokens(); got < 8_000 || got > 9_000 {
		t.Errorf("%d tokens were counted, want a little over 8,000", got)
	}
}

// Evaluations at the same time share nothing.
func testParallel(t *testing.T, s *suite) {
	const n = 3
	var all sync.WaitGroup
	for i := range n {
		text := fmt.Sprintf("answer-%d", i)
		a, m := s.New(t, reply(text))
		p := promptOf[prompt.Text](t, prompt.Markdown("task", "Task", fmt.Sprintf("Say prompt-%d.", i)))
		all.Go(func() {
			resp, err := drover.Evaluate(t.Context(), a, p, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if string(resp.Output) != text {
				t.Errorf("answer %d is %q", i, resp.Output)
			}
			for other := range n {
				if m.Read(fmt.Sprintf("prompt-%d.", other)) != (other == i) {
					t.Errorf("model %d has read prompt %d, or not its own", i, other)
				}
			}
		})
	}
	all.Wait()
}

// A conversation goes on, can be interrupted, resumed and forked.
func testConversations(t *testing.T, s *suite) {
	a, m := s.New(t, reply("first"), reply("second"), waits(), reply("fourth"), reply("of the fork"), reply("resumed"))
	c := drover.Converse(a, promptOf[prompt.Text](t), nil)
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	wantAnswer(t, "first")(c.Begin(t.Context()))
	wantAnswer(t, "second")(c.Send(t.Context(), "Go on."))
	go func() {
		if m.Await(t.Context(), 3) == nil {
			c.Interrupt()
		}
	}()
	if _, err := c.Send(t.Context(), "Wait."); !errors.Is(err, drover.ErrInterrupted) {
		t.Errorf("the error of the interrupted turn is %v", err)
	}
	wantAnswer(t, "fourth")(c.Send(t.Context(), "And now."))
	fork, err := c.Fork(nil)
	if err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, "of the fork")(fork.Send(t.Context(), "The fork speaks."))
	if err := fork.Close(); err != nil {
		t.Error(err)
	}
	token := c.ResumeToken()
	if err := c.Close(); err != nil { // one conversation at a time goes on with it
		t.Fatal(err)
	}
	resumed := drover.Converse(a, promptOf[prompt.Text](t), &drover.Options{Resume: token})
	wantAnswer(t, "resumed")(resumed.Send(t.Context(), "Once more."))
	if err := resumed.Close(); err != nil {
		t.Error(err)
	}
}

func wantAnswer(t *testing.T, want string) func(*drover.Response[prompt.Text], error) {
	t.Helper()
	return func(resp *drover.Response[prompt.Text], err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if string(resp.Output) != want {
			t.Errorf("the answer is %q, want %q", resp.Output, want)
		}
	}
}
