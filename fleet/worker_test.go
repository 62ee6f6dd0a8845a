// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// A question is a request of the tests, and its answer a text.
type question struct {
	Text string `json:"text"`
}

// asks makes the agent "asks" of a script.
func asks(finish func(context.Context, question, string) (string, error), steps ...agenttest.Step) fleet.Agent {
	return fleet.Handle("asks", fleet.Handler[question, string]{
		Adapter: agenttest.New(steps...), Finish: finish,
		Prepare: func(_ context.Context, q question, _ *session.Session) (*prompt.Prompt[string], *drover.Options, error) {
			p, err := prompt.FromText[string](q.Text)
			return p, nil, err
		},
	})
}

func answers(text string) agenttest.Step {
	return agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: text})
}

// work starts a worker, and returns how to stop it.
func work(t *testing.T, w fleet.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run = %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("the worker does not stop")
		}
	})
	t.Cleanup(stop)
	return stop
}

func quick(int) time.Duration { return 10 * time.Millisecond }

func submit(t *testing.T, f *fleet.Fleet, text, key string) *fleet.Run {
	t.Helper()
	r, err := f.Submit(t.Context(), "asks", question{text}, &fleet.SubmitOptions{Key: key})
	if err != nil {
		t.Fatalf("Submit = %v", err)
	}
	return r
}

func wait(t *testing.T, r *fleet.Run) *fleet.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	result, err := r.Wait(ctx)
	if err != nil {
		t.Fatalf("Wait = %v", err)
	}
	return result
}

func wantState(t *testing.T, r *fleet.Run, want fleet.State) {
	t.Helper()
	if got, err := r.State(t.Context()); got != want || err != nil {
		t.Errorf("State() = %s, %v, want %s", got, err, want)
	}
}

func TestSubmit_IsIdempotentByKey(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		first := submit(t, f, "Why?", "one")
		if again := submit(t, open(t), "Why?", "one"); again.ID() != first.ID() {
			t.Errorf("the same request has the runs %s and %s", first.ID(), again.ID())
		}
		if _, err := f.Submit(t.Context(), "asks", question{"How?"}, &fleet.SubmitOptions{Key: "one"}); !errors.Is(err, fleet.ErrKeyTaken) {
			t.Errorf("Submit of another request = %v, want ErrKeyTaken", err)
		}
		var submitting sync.WaitGroup
		for _, p := range []fleet.Priority{fleet.High, fleet.Normal, fleet.Low, ""} {
			for _, f := range []*fleet.Fleet{f, open(t)} {
				submitting.Go(func() {
					if _, err := f.Submit(t.Context(), "asks", question{"Now?"}, &fleet.SubmitOptions{Key: "two", Priority: p}); err != nil {
						t.Errorf("Submit with the priority %q = %v", p, err)
					}
				})
			}
		}
		submitting.Wait()
		if a, b := submit(t, f, "Why?", ""), submit(t, f, "Why?", ""); a.ID() == b.ID() {
			t.Error("two requests without a key are one run")
		}
		found, err := open(t).Run(t.Context(), first.ID())
		if err != nil {
			t.Fatalf("Run = %v", err)
		}
		wantState(t, found, fleet.Queued)
		for _, id := range []string{"asks.none", "asks", "", "a.b.c"} {
			if _, err := f.Run(t.Context(), id); !errors.Is(err, fleet.ErrNoRun) {
				t.Errorf("Run(%q) = %v, want ErrNoRun", id, err)
			}
		}
		n := 0
		for _, err := range f.Runs(t.Context()) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 4 {
			t.Errorf("Runs has %d runs, want 4", n)
		}
	})
}

func TestWorker_AnswersARequestOnce(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		r := submit(t, f, strings.Repeat("Why? ", 100_000), "") // larger than a message
		var finished atomic.Int64
		a := asks(func(_ context.Context, q question, answer string) (string, error) {
			finished.Add(1)
			return fmt.Sprintf("%s (%d)", answer, len(q.Text)), nil
		}, agenttest.Emit(event.Text{Content: "Because."}), answers("Because."))
		work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}})
		work(t, fleet.Worker{Fleet: open(t), Agents: []fleet.Agent{a}})
		result := wait(t, r)
		var answer string
		if err := result.Decode(&answer); err != nil || answer != "Because. (500000)" || result.Attempts != 1 {
			t.Errorf("the answer is %q, %v after %d attempts", answer, err, result.Attempts)
		}
		wantState(t, r, fleet.Succeeded)
		if finished.Load() != 1 {
			t.Errorf("the finish step ran %d times", finished.Load())
		}
		var last int64
		texts := 0
		for record, err := range r.Events(t.Context(), 0) {
			if last++; err != nil || record.Pos != last {
				t.Fatalf("event %d has the number %d, %v", last, record.Pos, err)
			}
			if strings.Contains(string(record.Data), `"Because."`) {
				texts++
			}
		}
		if texts == 0 {
			t.Errorf("none of %d events has the text of the agent", last)
		}
	})
}

func TestWorker_DeadRunHasItsReasonAndComesBack(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		var calls atomic.Int64
		a := asks(nil, func(r *agenttest.Run) {
			if calls.Add(1) <= 3 {
				r.Yield(event.Event{}, errors.New("the model is tired"))
			}
		}, answers("ok"))
		work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}, Attempts: 3, Backoff: quick})
		r := submit(t, f, "Why?", "")
		result := wait(t, r)
		if result.State != fleet.Dead || !strings.Contains(result.Reason, "the model is tired") || result.Attempts != 3 {
			t.Fatalf("the run ended with %+v, want it dead after 3 attempts with the reason", result)
		}
		if err := result.Decode(new(string)); err == nil {
			t.Error("Decode of a dead run = nil, want an error")
		}
		if err := r.Retry(t.Context()); err != nil {
			t.Fatalf("Retry = %v", err)
		}
		if result := waitAfter(t, r, fleet.Dead); result.State != fleet.Succeeded || result.Attempts != 1 {
			t.Errorf("after Retry the run ended with %+v", result)
		}
		if err := r.Retry(t.Context()); err == nil {
			t.Error("Retry of a run that has succeeded = nil, want an error")
		}
	})
}

// waitAfter waits for another end than one that is there.
func waitAfter(t *testing.T, r *fleet.Run, old fleet.State) *fleet.Result {
	t.Helper()
	for {
		if result := wait(t, r); result.State != old {
			return result
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestWorker_BadRequestIsDeadAtOnce(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{asks(nil, answers("ok"))}})
	r, err := f.Submit(t.Context(), "asks", []int{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result := wait(t, r); result.State != fleet.Dead || result.Attempts != 1 {
		t.Errorf("the run ended with %+v, want it dead after one attempt", result)
	}
}

func TestWorker_PanicIsAFailedAttempt(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	var calls atomic.Int64
	a := asks(func(context.Context, question, string) (string, error) {
		if calls.Add(1) == 1 {
			panic("oh")
		}
		return "fine", nil
	}, answers("ok"))
	work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}, Backoff: quick})
	if result := wait(t, submit(t, f, "Why?", "")); result.State != fleet.Succeeded || result.Attempts != 2 {
		t.Errorf("the run ended with %+v, want success in the second attempt", result)
	}
}

// The agent has answered and the finish step fails: the next attempt begins with that step.
func TestWorker_AnswerIsNotPaidTwice(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	var evaluations, finishes atomic.Int64
	a := asks(func(_ context.Context, _ question, answer string) (string, error) {
		if finishes.Add(1) < 3 {
			return "", errors.New("the disk is full")
		}
		return answer, nil
	}, func(*agenttest.Run) { evaluations.Add(1) }, answers("ok"))
	work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}, Backoff: quick})
	if result := wait(t, submit(t, f, "Why?", "")); string(result.Output) != `"ok"` || evaluations.Load() != 1 {
		t.Errorf("the run ended with %+v after %d evaluations, want one", result, evaluations.Load())
	}
}

func TestRun_Cancel(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		waiting := submit(t, f, "Why?", "")
		if err := waiting.Cancel(t.Context()); err != nil {
			t.Fatalf("Cancel = %v", err)
		}
		wantState(t, waiting, fleet.Cancelled) // without any worker
		begun := make(chan struct{})
		var blocks atomic.Bool
		blocks.Store(true)
		work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{asks(nil, func(r *agenttest.Run) {
			if blocks.Swap(false) {
				close(begun)
				agenttest.Block()(r)
			}
		}, answers("ok"))}})
		running := submit(t, f, "How?", "")
		<-begun
		wantState(t, running, fleet.Running)
		for range 2 {
			if err := running.Cancel(t.Context()); err != nil {
				t.Fatalf("Cancel = %v", err)
			}
		}
		if result := wait(t, running); result.State != fleet.Cancelled {
			t.Errorf("the running run ended with %+v, want it cancelled", result)
		}
		if err := running.Retry(t.Context()); err != nil {
			t.Fatalf("Retry = %v", err)
		}
		if result := waitAfter(t, running, fleet.Cancelled); result.State != fleet.Succeeded {
			t.Errorf("after Retry the run ended with %+v", result)
		}
		wantState(t, waiting, fleet.Cancelled) // the worker has seen its request, too
	})
}

func TestWorker_DrainHandsBackWhatIsNotOver(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	begun := make(chan struct{})
	stop := work(t, fleet.Worker{Fleet: f, Drain: time.Millisecond, Attempts: 1, Agents: []fleet.Agent{asks(nil, func(r *agenttest.Run) {
		close(begun)
		agenttest.Block()(r)
	})}})
	r := submit(t, f, "Why?", "")
	<-begun
	stop()
	wantState(t, r, fleet.Queued)
	work(t, fleet.Worker{Fleet: f, Attempts: 1, Agents: []fleet.Agent{asks(nil, answers("ok"))}})
	if result := wait(t, r); result.State != fleet.Succeeded || result.Attempts != 1 {
		t.Errorf("the run ended with %+v; an attempt that was handed back does not count", result)
	}
}

// A request that kills each worker that takes it is dead in the end, and a worker that lives does not begin it.
func TestWorker_PoisonRequestIsDead(t *testing.T) {
	name := "t" + ident.NewUUID()
	for range 2 {
		dying, begun := openOn(t, "embedded", name), make(chan struct{})
		work(t, fleet.Worker{Fleet: dying, Lease: 200 * time.Millisecond, Attempts: 2, Agents: []fleet.Agent{asks(nil, func(r *agenttest.Run) {
			close(begun)
			agenttest.Block()(r)
		})}})
		submit(t, dying, "Why?", "poison")
		<-begun
		_ = dying.Close()
	}
	f := openOn(t, "embedded", name)
	work(t, fleet.Worker{Fleet: f, Lease: 200 * time.Millisecond, Attempts: 2, Agents: []fleet.Agent{asks(nil, answers("ok"))}})
	if result := wait(t, submit(t, f, "Why?", "poison")); result.State != fleet.Dead || !strings.Contains(result.Reason, "its worker has died") {
		t.Errorf("the run ended with %+v, want it dead because its workers died", result)
	}
}

// A run that shows signs of life stays with its worker, however long it takes.
func TestWorker_LeaseIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		var begun atomic.Int64
		a := asks(nil, func(r *agenttest.Run) {
			begun.Add(1)
			for range 12 {
				r.Yield(event.Event{Payload: event.Text{Content: "still here"}}, nil)
				time.Sleep(100 * time.Millisecond)
			}
		}, answers("ok"))
		f := open(t)
		for range 2 {
			work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}, Lease: 450 * time.Millisecond})
		}
		if result := wait(t, submit(t, f, "Why?", "")); result.Attempts != 1 || begun.Load() != 1 {
			t.Errorf("the run ended with %+v after %d evaluations, want one", result, begun.Load())
		}
	})
}

func TestWorker_StuckRunIsStopped(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	work(t, fleet.Worker{
		Fleet: f, Attempts: 1, Stuck: 100 * time.Millisecond, Lease: 90 * time.Millisecond,
		Agents: []fleet.Agent{asks(nil, agenttest.Block())},
	})
	if result := wait(t, submit(t, f, "Why?", "")); result.State != fleet.Dead || !strings.Contains(result.Reason, "no sign of life") {
		t.Errorf("the run ended with %+v, want it dead without a sign of life", result)
	}
}

func TestWorker_ConcurrencyOfAnAgent(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	var now, most atomic.Int64
	a := asks(nil, func(*agenttest.Run) {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(10 * time.Millisecond)
		now.Add(-1)
	}, answers("ok"))
	var all []*fleet.Run
	for range 12 {
		all = append(all, submit(t, f, "Why?", ""))
	}
	work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}, Concurrency: 3})
	for _, r := range all {
		wait(t, r)
	}
	if got := most.Load(); got < 2 || got > 3 {
		t.Errorf("%d runs were under way at once, want up to 3", got)
	}
}

// A worker dies in the middle of its second call. The next one goes on: it repeats neither.
func TestWorker_DeadWorkerIsReplaced(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		dying, begun := open(t), make(chan struct{})
		call := func(id, command string) event.ToolCall {
			return event.ToolCall{ID: event.CallID(id), Name: "Bash", Input: json.RawMessage(`{"command":"` + command + `"}`)}
		}
		w := fleet.Worker{Fleet: dying, Lease: time.Second, Agents: []fleet.Agent{asks(nil,
			agenttest.UseTool(call("a1", "one"), "first output"),
			agenttest.Decide(call("a2", "two")),
			func(r *agenttest.Run) { close(begun) }, agenttest.Block())}}
		work(t, w)
		r := submit(t, dying, "Why?", "")
		<-begun
		for record, err := range r.Events(t.Context(), 0) { // the first call is recorded as finished
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(record.Data), `"tool:invoked"`) {
				break
			}
		}
		_ = dying.Close() // the worker can neither append nor extend its lease

		var told atomic.Value
		decisions := make(chan event.Decision, 9)
		ask := func(c event.ToolCall) agenttest.Step {
			return func(run *agenttest.Run) { decisions <- run.Request.Host.Decide(run.Context, c) }
		}
		f := open(t)
		next := fleet.Worker{Fleet: f, Lease: time.Second, Agents: []fleet.Agent{asks(nil,
			func(run *agenttest.Run) { told.Store(run.Request.AppendSystemPrompt) },
			ask(call("b1", "one")), ask(call("b1", "one")), ask(call("b2", "two")), ask(call("b3", "one")), ask(call("b4", "two")), ask(call("b5", "three")),
			answers("ok"))}}
		work(t, next)
		r, err := f.Run(t.Context(), r.ID())
		if err != nil {
			t.Fatal(err)
		}
		if result := wait(t, r); result.State != fleet.Succeeded || result.Attempts != 2 {
			t.Fatalf("the run ended with %+v, want success in the second attempt", result)
		}
		if text, _ := told.Load().(string); !strings.Contains(text, "You have begun this task before") {
			t.Errorf("the model is not told of the interruption: %q", text)
		}
		wants := []struct {
			call, reason string
			verdict      event.Verdict
		}{
			{"the finished call", "first output", event.Deny},
			{"the finished call, asked again", "first output", event.Deny},
			{"the call under way", "outcome of this call is unknown", event.Deny},
			{"the finished call in a later step", "", event.Allow},
			{"the call of unknown outcome, made again", "", event.Allow},
			{"a new call", "", event.Allow},
		}
		for _, want := range wants {
			if d := <-decisions; d.Verdict != want.verdict || !strings.Contains(d.Reason, want.reason) {
				t.Errorf("%s: %s %q, want %s with %q", want.call, d.Verdict, d.Reason, want.verdict, want.reason)
			}
		}
	})
}
