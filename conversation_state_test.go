// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// A keeper is a scripted agent that is kept over several prompts.
type keeper struct {
	agent.Adapter
	// refuses says why an agent cannot be opened, counted from 1, or warmed up.
	refuses  func(ctx context.Context, n int) error
	unready  func() error
	mu       sync.Mutex
	requests []agent.Request // those with which one was opened
	closed   int
	unclosed error // what Close of each agent returns
}

func (k *keeper) Open(ctx context.Context, req agent.Request) (agent.Conversation, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests = append(k.requests, req)
	if k.refuses != nil {
		if err := k.refuses(ctx, len(k.requests)); err != nil {
			return nil, err
		}
	}
	return &keptConversation{k, req}, nil
}

func (k *keeper) Classify(err error) agent.Failure {
	if errors.Is(err, errBusyModel) {
		return agent.Failure{Kind: agent.FailureRateLimit}
	}
	return agent.Failure{}
}

type keptConversation struct {
	k   *keeper
	req agent.Request
}

func (t *keptConversation) Send(ctx context.Context, text string) iter.Seq2[event.Event, error] {
	req := t.req
	req.Prompt = text
	return t.k.Run(ctx, req)
}

func (t *keptConversation) WarmUp(context.Context) error {
	if t.k.unready == nil {
		return nil
	}
	return t.k.unready()
}

func (t *keptConversation) Close() error {
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	t.k.closed++
	return t.k.unclosed
}

// opened is each opening as what it resumes, and whether it forks that.
func (k *keeper) opened() []string {
	var got []string
	for _, r := range k.requests {
		got = append(got, fmt.Sprintf("%s %t", r.Resume, r.Fork))
	}
	return got
}

func converse(t *testing.T, a agent.Adapter, opts *drover.Options) *drover.Conversation[prompt.Text] {
	t.Helper()
	c := drover.Converse(a, newPrompt[prompt.Text](t), opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// tokened is a run that succeeds and can be resumed.
func tokened(token string) []agenttest.Step {
	return []agenttest.Step{agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: token, ResumeToken: token})}
}

// A fork never speaks in the conversation that it comes from, also if it has to try twice or is interrupted.
func TestFork_NeverWritesToTheParentConversation(t *testing.T) {
	for name, x := range map[string]struct {
		first []agenttest.Step
		want  []string
	}{
		"it fails with a token of its own": {fails(errBusyModel, "forked"), []string{" false", "one true", "one true"}},
		"it fails without one":             {fails(errBusyModel, ""), []string{" false", "one true", "one true"}},
		"it has called tools":              {fails(errBusyModel, "forked", uses("Bash")), []string{" false", "one true", "forked false"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keeper{Adapter: newMoody(tokened("one"), x.first, tokened("two"))}
				c := converse(t, k, &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Retry: &drover.RetryPolicy{}})
				if _, err := c.Begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				fork, err := c.Fork(nil)
				if err != nil {
					t.Fatal(err)
				}
				defer fork.Close()
				if _, err := fork.Begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(x.want, k.opened()); diff != "" {
					t.Errorf("opened (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestFork_InterruptedAtOnceStaysAFork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newMoody(tokened("one"), []agenttest.Step{agenttest.Obstinate(), agenttest.Sleep(time.Second)}, tokened("two"), tokened("two"))
		c := converse(t, a, &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}})
		if _, err := c.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		fork, err := c.Fork(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer fork.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := fork.Send(ctx, "Wait."); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("it ended with %v", err)
		}
		for range 2 {
			if _, err := fork.Send(t.Context(), "And now."); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, r := range a.Requests() {
			got = append(got, fmt.Sprintf("%s %t", r.Resume, r.Fork))
		}
		if diff := cmp.Diff([]string{" false", "one true", "one true", "two false"}, got); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

// An agent that cannot be kept goes on from the last answer, also after a turn that failed.
func TestConversation_FailedTurnKeepsTheResumeToken(t *testing.T) {
	a := newMoody(tokened("one"), []agenttest.Step{agenttest.Fail(errBadModel)}, tokened("two"))
	c := converse(t, a, &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}})
	if _, err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), "More."); !errors.Is(err, errBadModel) {
		t.Fatalf("it ended with %v", err)
	}
	if _, err := c.Send(t.Context(), "Again."); err != nil {
		t.Fatal(err)
	}
	if got := a.Requests()[2].Resume; got != "one" {
		t.Errorf("the turn after it resumes %q, want what was answered", got)
	}
}

// A later message is retried too, from where the conversation was.
func TestSend_RetryResumesTheConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{Adapter: newMoody(tokened("one"), fails(errBusyModel, ""), tokened("two"))}
		c := converse(t, k, &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Retry: &drover.RetryPolicy{}})
		if _, err := c.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		resp, err := c.Send(t.Context(), "More.")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{" false", "one false"}, k.opened()); diff != "" || resp.Attempts != 2 {
			t.Errorf("%d attempts; opened (-want +got):\n%s", resp.Attempts, diff)
		}
	})
}

// Sections that are opened by a new beginning are opened by every message.
func TestSend_RestartOpensSections(t *testing.T) {
	open := calls(call("open", "mcp__drover__"+prompt.OpenSections, `{"section_keys":["more"],"reason":"r"}`))
	hidden := prompt.Markdown("more", "More", "The moon is blue.").With(notes())
	hidden.Summary, hidden.Visibility = "There is more.", prompt.Summary
	p, err := prompt.NewPrompt[prompt.Text]("demo", "task", prompt.Markdown("task", "Task", "Do it."), hidden)
	if err != nil {
		t.Fatal(err)
	}
	a := newMoody(tokened("one"), []agenttest.Step{open, agenttest.Block()}, tokened("two"))
	c := drover.Converse(&keeper{Adapter: a}, p, &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, RestartToOpen: true})
	defer c.Close()
	if _, err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	resp, err := c.Send(ctx, "Which colour?")
	if err != nil {
		t.Fatal(err)
	}
	sent := a.Requests()[2].Prompt
	if resp.Expansions != 1 || !strings.Contains(sent, "The moon is blue.") || !strings.HasSuffix(sent, "\n\nWhich colour?") {
		t.Errorf("after %d expansions the agent receives %q", resp.Expansions, sent)
	}
}

// Why an evaluation was stopped is known, also where it would be tried again.
func TestDeadline_DuringStartIsTheError(t *testing.T) {
	for name, retry := range map[string]*drover.RetryPolicy{"once": nil, "tried again": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keeper{Adapter: agenttest.New(), refuses: func(ctx context.Context, _ int) error {
					<-ctx.Done()
					return ctx.Err()
				}}
				_, err := drover.Evaluate(t.Context(), k, newPrompt[prompt.Text](t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Retry: retry, Deadline: guard.FromNow(time.Minute)})
				if !errors.Is(err, guard.ErrDeadlineExceeded) {
					t.Errorf("it ended with %v, want that the deadline has passed", err)
				}
				if failure, ok := errors.AsType[*drover.EvaluationError](err); !ok || failure.Summary.Status != event.DoneInterrupted {
					t.Errorf("it counts as %s, want interrupted", failure.Summary.Status)
				}
			})
		})
	}
}

// The error of an evaluation inside of another is its cause, and not its error.
func TestEvaluationError_InnerEvaluationIsTheCause(t *testing.T) {
	inner := &drover.EvaluationError{Prompt: "inner", Message: "no", Err: errBadModel}
	_, err := drover.Evaluate(t.Context(), agenttest.New(agenttest.Fail(inner)), newPrompt[prompt.Text](t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}})
	outer, ok := err.(*drover.EvaluationError) // which of the two it is
	if !ok || outer.Prompt != "demo:task" || !errors.Is(err, errBadModel) || inner.Summary.Attempts != 0 {
		t.Errorf("the error is %+v", err)
	}
}

// The prompt is sent again as the prompt, whichever message an earlier failure asked for.
func TestBegin_AfterAFailureSendsThePromptAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newMoody(fails(errBusyModel, "one", uses("Bash")), tokened("two"))
		k := &keeper{Adapter: a, refuses: func(_ context.Context, n int) error {
			if n == 2 {
				return errBadModel
			}
			return nil
		}}
		c := converse(t, k, &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Retry: &drover.RetryPolicy{}})
		if _, err := c.Begin(t.Context()); !errors.Is(err, errBadModel) {
			t.Fatalf("it ended with %v", err)
		}
		if _, err := c.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sent := a.Requests()[1].Prompt; !strings.HasPrefix(sent, "## ") {
			t.Errorf("the agent receives %q, want the prompt", sent)
		}
	})
}

// An agent that does not get ready does not receive later messages.
func TestConversation_AgentThatFailedToStartIsNotReused(t *testing.T) {
	k := &keeper{Adapter: newMoody(tokened("one")), unready: func() error { return errBadModel }}
	c := converse(t, k, &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}})
	if err := c.Prepare(t.Context()); !errors.Is(err, errBadModel) {
		t.Fatalf("it ended with %v", err)
	}
	if k.closed != 1 {
		t.Error("the agent is left behind")
	}
	if _, err := c.Begin(t.Context()); err != nil || len(k.requests) != 2 {
		t.Errorf("%d agents were started: %v", len(k.requests), err)
	}
}

// A session that had no room for one turn may have some for the next.
func TestConversation_ContinuesWhenTheSessionHasRoomAgain(t *testing.T) {
	store := &fullStore{session.NewMemoryStore(), 1000}
	s, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := converse(t, newMoody(tokened("one")), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Session: s})
	if _, err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.room = 0
	if _, err := c.Send(t.Context(), "More."); !errors.Is(err, errFull) {
		t.Fatalf("it ended with %v", err)
	}
	store.room = 1000
	if _, err := c.Send(t.Context(), "Again."); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// A call of a subagent that works on in the background is recorded when its agent is ended, if not before.
func TestCalls_BackgroundCallIsRecordedOnce(t *testing.T) {
	s := session.New(nil)
	background := event.Event{Payload: call("1", "Bash", `{}`), AgentID: "sub"}
	k := &keeper{Adapter: agenttest.New(agenttest.EmitEvents(background), agenttest.Done("one"))}
	c := converse(t, k, &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Session: s})
	if _, err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := recorded(s); len(got) != 0 {
		t.Errorf("%q is recorded, and may still end", got)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1 Bash native cancelled of sub: The turn ended before the call did."}, recorded(s)); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

func TestConversation_ClosedRefusesATurn(t *testing.T) {
	c := converse(t, newMoody(tokened("one")), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}})
	if _, err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), "More."); !errors.Is(err, drover.ErrClosed) {
		t.Errorf("it still accepts messages: %v", err)
	}
	if c.Interrupt() {
		t.Error("a closed conversation reports a turn under way")
	}
	if _, err := c.Fork(nil); !errors.Is(err, drover.ErrClosed) {
		t.Errorf("it can be forked, and its folder is gone: %v", err)
	}
}

// Hooks may come between two turns, and forks at any time.
func TestConversation_HooksAndForksRunConcurrently(t *testing.T) {
	var hooks *agent.Hooks
	var host agent.Host
	a := agenttest.New(func(r *agenttest.Run) { hooks, host = r.Request.Hooks, r.Request.Host }, agenttest.Done("one"))
	c := converse(t, &keeper{Adapter: a}, &drover.Options{Resume: "zero"})
	if _, err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	background, decide := hooks, host
	stop := make(chan struct{})
	var wg sync.WaitGroup
	forever := func(do func(n int)) {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					do(n)
				}
			}
		})
	}
	forever(func(int) { background.SubagentStarted(t.Context(), agent.Subagent{ID: "s"}) })
	forever(func(n int) { decide.Decide(t.Context(), call(fmt.Sprint("call", n), "Read", `{}`)) })
	forever(func(int) {
		if fork, err := c.Fork(nil); err == nil {
			_ = fork.Close()
		}
	})
	for range 20 {
		if _, err := c.Send(t.Context(), "More."); err != nil {
			t.Error(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	close(stop)
	wg.Wait()
}

// A conversation may begin with a message of the caller's. The prompt is before it.
func TestSend_BeforeBeginSendsThePromptFirst(t *testing.T) {
	for name, c := range map[string]struct {
		opts drover.Options
		want string
	}{
		"prompt in the message":       {drover.Options{}, "## 1. Task (task)\n\nDo it.\n\nStart with the tests."},
		"prompt in the system prompt": {drover.Options{Placement: drover.AsSystem}, "Start with the tests."},
		"conversation that goes on":   {drover.Options{Resume: "earlier"}, "Start with the tests."},
	} {
		t.Run(name, func(t *testing.T) {
			a := newMoody(tokened("one"), tokened("two"))
			c.opts.Dir = t.TempDir()
			conv := converse(t, a, &c.opts)
			for _, text := range []string{"Start with the tests.", "And now the rest."} {
				if _, err := conv.Send(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			if got := []string{a.Requests()[0].Prompt, a.Requests()[1].Prompt}; got[0] != c.want || got[1] != "And now the rest." {
				t.Errorf("the agent was sent %q, want %q first", got, c.want)
			}
		})
	}
}

// A fork does not multiply the money: both conversations consume one budget, unless the fork has its own.
func TestFork_SharesTheBudget(t *testing.T) {
	limit := func(n int64) *guard.Budget { return &guard.Budget{MaxTotalTokens: n} }
	for name, c := range map[string]struct {
		opts  drover.Options
		fork  *guard.Budget
		spent bool
	}{
		"budget":          {drover.Options{Settings: agent.Settings{Budget: limit(100)}}, nil, true},
		"tracker":         {drover.Options{Tracker: guard.NewTracker(*limit(100))}, nil, true},
		"own budget":      {drover.Options{Settings: agent.Settings{Budget: limit(100)}}, limit(100), false},
		"own for tracker": {drover.Options{Tracker: guard.NewTracker(*limit(100))}, limit(100), false},
	} {
		t.Run(name, func(t *testing.T) {
			tokens, err := event.NewTokens(event.CoverageComplete, event.TokenRecord{Tokens: event.TokenCount{Input: event.InputTokens{Total: 150}}})
			if err != nil {
				t.Fatal(err)
			}
			costly := []agenttest.Step{agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: "one", ResumeToken: "one", Usage: event.Usage{Tokens: tokens}})}
			c.opts.Dir = t.TempDir()
			parent := converse(t, newMoody(tokened("zero"), costly, tokened("two")), &c.opts)
			if _, err := parent.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			fork, err := parent.Fork(c.fork)
			if err != nil {
				t.Fatal(err)
			}
			defer fork.Close()
			if _, err := parent.Send(t.Context(), "Spend it."); err != nil {
				t.Fatal(err)
			}
			if _, err := fork.Send(t.Context(), "Go on."); errors.Is(err, guard.ErrBudgetExhausted) != c.spent {
				t.Errorf("the fork ends with %v, want that the budget is spent: %t", err, c.spent)
			}
		})
	}
}

func TestEvents_SecondLoopFails(t *testing.T) {
	run := drover.Stream(t.Context(), newMoody(tokened("one")), newPrompt[prompt.Text](t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}})
	inside := 0
	for _, err := range run.Events() {
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range run.Events() {
			if inside++; !errors.Is(err, drover.ErrReading) {
				t.Errorf("the loop inside gets %v, want ErrReading", err)
			}
		}
	}
	if inside == 0 {
		t.Error("the loop inside ended without a word")
	}
	for e, err := range run.Events() {
		t.Errorf("a later loop gets %v, %v", e, err)
	}
	if _, err := run.Response(); err != nil {
		t.Error(err)
	}
}

// Close waits for the turn under way, and so for the loop that reads it. In that loop it would wait for itself.
func TestClose_InsideTheLoopFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, newMoody(tokened("one")), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}})
		for range c.Stream(t.Context(), "").Events() {
			if err := c.Close(); !errors.Is(err, drover.ErrReading) {
				t.Errorf("Close in the loop gives %v, want ErrReading", err)
			}
		}
		if err := c.Close(); err != nil {
			t.Errorf("Close after the loop gives %v", err)
		}
	})
}

// A reader that is slow, but not for ever, is waited for.
func TestClose_WaitsForTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, newMoody(tokened("one")), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}})
		closed := make(chan error, 1)
		left := false
		for range c.Stream(t.Context(), "").Events() {
			if closed != nil && !left {
				go func() { closed <- c.Close() }()
				time.Sleep(4 * time.Second)
				left = true
			}
		}
		if err := <-closed; err != nil || !left {
			t.Errorf("Close gives %v, and the reader has left: %t", err, left)
		}
	})
}
