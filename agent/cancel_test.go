// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/testkit"
)

func TestRunner_EndedContextNeverReachesTheAdapter(t *testing.T) {
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	cases := []struct {
		name  string
		req   agent.Request
		token string // in the done
	}{
		{"what was to be resumed still can be", agent.Request{}, "stored"},
		{"also if the request named it", agent.Request{Resume: "named"}, "named"},
		{"a fresh run has nothing to resume", agent.Request{Fresh: true}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := agenttest.New(agenttest.Done("stored"))
			r := newRunner(t, a, nil)
			collect(t, r.Run(t.Context(), agent.Request{}))

			events := collect(t, r.Run(ctx, c.req))
			expect(t, events, "done:interrupted")
			if got := doneOf(events); got.ResumeToken != c.token || got.Reason != cause.Error() {
				t.Errorf("got token %q and reason %q, want %q and %q", got.ResumeToken, got.Reason, c.token, cause)
			}
			if n := len(a.Requests()); n != 1 {
				t.Errorf("the adapter had %d runs, want only the first", n)
			}
			if got := r.ResumeToken(); got != "stored" {
				t.Errorf("the runner remembers %q, want it untouched", got)
			}
		})
	}
}

// A stop at every event of a run: whatever the adapter makes of it, the next event is the done.
func TestStop_AtEveryEventLeavesOnlyTheDone(t *testing.T) {
	stubborn := func(then ...agenttest.Step) []agenttest.Step {
		return append(append([]agenttest.Step{agenttest.Obstinate()}, recording()...), then...)
	}
	cases := []struct {
		name   string
		script []agenttest.Step
		status event.DoneStatus
		after  time.Duration // from the stop to the done
		token  string        // in the done and remembered; "old" is that of the run before
	}{
		{"the adapter stops", append(recording(), agenttest.Block()), event.DoneInterrupted, 0, ""},
		{"the adapter stalls", stubborn(agenttest.Sleep(time.Minute)), event.DoneInterrupted, 500 * time.Millisecond, "old"},
		{"the adapter emits done in time", stubborn(agenttest.Sleep(499*time.Millisecond), agenttest.Done("new")), event.DoneSuccess, 499 * time.Millisecond, "new"},
		{"the adapter emits done too late", stubborn(agenttest.Sleep(501*time.Millisecond), agenttest.Done("new")), event.DoneInterrupted, 500 * time.Millisecond, "old"},
		{"the adapter emits more and then done", []agenttest.Step{goodbye}, event.DoneSuccess, 0, "new"},
		{"the adapter fails", stubborn(agenttest.Block(), agenttest.Fail(errBroken)), event.DoneInterrupted, 0, "old"},
		{"the adapter panics", stubborn(agenttest.Block(), agenttest.Panic("stopped")), event.DoneInterrupted, 0, "old"},
		{"the adapter returns", stubborn(agenttest.Block()), event.DoneInterrupted, 0, "old"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for stopAt := 1; stopAt <= len(recorded); stopAt++ {
				synctest.Test(t, func(t *testing.T) {
					r, events, after := stoppedRun(t, c.script, stopAt)
					if len(events) != stopAt+1 {
						t.Fatalf("stopped at %d: got %s, want only a done after it", stopAt, words(events))
					}
					done := doneOf(events)
					if done.Status != c.status || done.ResumeToken != c.token || after != c.after {
						t.Errorf("stopped at %d: %s with token %q after %v, want %s with %q after %v",
							stopAt, done.Status, done.ResumeToken, after, c.status, c.token, c.after)
					}
					if got := r.ResumeToken(); got != c.token {
						t.Errorf("stopped at %d: the runner remembers %q, want %q", stopAt, got, c.token)
					}
				})
			}
		})
	}
}

// goodbye is a polite agent: when it is stopped it emits a text, and if more is still wanted it emits done.
func goodbye(r *agenttest.Run) {
	agenttest.EmitEvents(recorded...)(r)
	<-r.Context.Done()
	r.Yield(event.Event{Payload: text("I stop.")}, nil)
	r.Yield(event.Event{Payload: event.Done{Status: event.DoneSuccess, ResumeToken: "new"}}, nil)
}

// stoppedRun stops a run at an event and returns how long the done took from then on. The run before left
// the token "old".
func stoppedRun(t *testing.T, script []agenttest.Step, stopAt int) (*agent.Runner, []event.Event, time.Duration) {
	t.Helper()
	a := agenttest.New(agenttest.Done("old"))
	r := newRunner(t, a, &agent.RunnerOptions{CloseTimeout: 2 * time.Minute})
	collect(t, r.Run(t.Context(), agent.Request{}))
	a.Steps = script

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var events []event.Event
	var stopped time.Time
	var took time.Duration
	for e, err := range r.Run(ctx, agent.Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !stopped.IsZero() {
			took = time.Since(stopped)
		}
		events = append(events, e)
		if len(events) == stopAt {
			stopped = time.Now()
			cancel()
		}
	}
	if err := wellFormed(events); err != nil {
		t.Errorf("stopped at %d: %v", stopAt, err)
	}
	return r, events, took
}

// The made done counts what was dropped, and the calls among it.
func TestDone_CountsDroppedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := append([]agenttest.Step{agenttest.Obstinate()}, recording()...)
		_, events, _ := stoppedRun(t, append(script, agenttest.Sleep(time.Second)), 3)
		if got, want := droppedIn(events), strconv.Itoa(len(recorded)-3); got != want {
			t.Errorf("dropped %s events, want %s", got, want)
		}
		if got, want := doneOf(events).Usage.ToolUses, callsBefore(len(recorded)); got != want {
			t.Errorf("%d tool uses, want all %d that were seen", got, want)
		}
	})
}

// What waited for the reader, or for its call, is counted too, and known.
func TestDone_CountsUnreadEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := agenttest.New(
			agenttest.Emit(text("a")), agenttest.Sleep(time.Second),
			agenttest.Emit(text("b")), agenttest.EmitEvents(event.Event{SessionID: "new", Payload: text("c")}), agenttest.Decide(call("unknown", "Read")), agenttest.Obstinate(), agenttest.Block(),
		)
		r := newRunner(t, a, &agent.RunnerOptions{Defaults: agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var events []event.Event
		for e := range r.Run(ctx, agent.Request{}) {
			if events = append(events, e); len(events) == 1 {
				time.Sleep(time.Minute)
				cancel()
			}
		}
		expect(t, events, "text done:interrupted")
		if got := droppedIn(events); got != "3" {
			t.Errorf("dropped %s events, want 2 texts and a decision", got)
		}
		if got := events[1].SessionID; got != "new" {
			t.Errorf("the done has the session %q, want that of the last event, dropped or not", got)
		}
	})
}

// The adapter's own done keeps its metadata; the count of the runner cannot be forged.
func TestDone_OfTheAdapterCountsDroppedEventsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := event.Event{
			Payload:  event.Done{Status: event.DoneInterrupted},
			Metadata: map[string]json.RawMessage{"stop": json.RawMessage(`"sigint"`), agent.DroppedEvents: json.RawMessage("0")},
		}
		_, events, _ := stoppedRun(t, []agenttest.Step{agenttest.Obstinate(), agenttest.Emit(text("a"), text("b")), agenttest.Block(), agenttest.Emit(text("c")), agenttest.EmitEvents(done)}, 1)
		if got := droppedIn(events); got != "2" {
			t.Errorf("dropped %s events, want 2", got)
		}
		if got := string(events[1].Metadata["stop"]); got != `"sigint"` {
			t.Errorf("the done's own metadata is %q", got)
		}
		if got := string(done.Metadata[agent.DroppedEvents]); got != "0" {
			t.Errorf("the metadata of the adapter was changed to %s", got)
		}
	})
}

// A run that is over drops nothing, however much its adapter still emits.
func TestStream_DropsEventsOnlyAfterTheContextEnds(t *testing.T) {
	events := collect(t, scripted(t, agenttest.Obstinate(), agenttest.Done(""), agenttest.Emit(text("late"))).Run(t.Context(), agent.Request{}))
	if got := droppedIn(events); got != "" {
		t.Errorf("dropped %s events, want no count of dropped events", got)
	}
}

func TestStop_ReasonIsTheCauseOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		events := collect(t, scripted(t, agenttest.Obstinate(), agenttest.Sleep(time.Minute)).Run(ctx, agent.Request{}))
		if got := doneOf(events); got.Reason != context.DeadlineExceeded.Error() || got.Duration != 1500*time.Millisecond {
			t.Errorf("reason %q after %v, want the deadline and 1.5s", got.Reason, got.Duration)
		}
		if took := time.Since(begun); took != 20*time.Second+1500*time.Millisecond {
			t.Errorf("the loop took %v, want the close timeout after the done", took)
		}
		time.Sleep(time.Minute)
	})
}

func TestDrainTimeout_IsConfigurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := agenttest.New(agenttest.Obstinate(), agenttest.Sleep(time.Minute))
		r := newRunner(t, a, &agent.RunnerOptions{DrainTimeout: 3 * time.Second, CloseTimeout: time.Hour})
		if got := doneOf(collect(t, r.Run(ctx, agent.Request{}))).Duration; got != 4*time.Second {
			t.Errorf("the done came after %v, want 4s", got)
		}
	})
}

// While the reader is busy the time for a done goes on: when it comes back, the done is there.
func TestStop_BusyReaderFindsTheDone(t *testing.T) {
	cases := []struct {
		name   string
		busy   time.Duration
		script []agenttest.Step
		status event.DoneStatus
		waits  time.Duration // after the reader is back
	}{
		{"the adapter has emitted done", 10 * time.Second, []agenttest.Step{agenttest.Sleep(time.Second), agenttest.Done("")}, event.DoneSuccess, 0},
		{"the adapter was held up", 10 * time.Second, []agenttest.Step{tick(1000, 0), agenttest.Done("")}, event.DoneSuccess, 0},
		{"the time is over", 10 * time.Second, []agenttest.Step{agenttest.Sleep(time.Minute), agenttest.Done("")}, event.DoneInterrupted, 0},
		{"the time is not over", 200 * time.Millisecond, []agenttest.Step{agenttest.Sleep(time.Minute), agenttest.Done("")}, event.DoneInterrupted, 300 * time.Millisecond},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script := append([]agenttest.Step{agenttest.Obstinate(), agenttest.Emit(text("a"), text("b"))}, c.script...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var status event.DoneStatus
				var back time.Time
				var waited time.Duration
				for e := range newRunner(t, agenttest.New(script...), &agent.RunnerOptions{CloseTimeout: time.Hour}).Run(ctx, agent.Request{}) {
					if done, isDone := e.Payload.(event.Done); isDone {
						status, waited = done.Status, time.Since(back)
						continue
					}
					cancel()
					time.Sleep(c.busy)
					back = time.Now()
				}
				if status != c.status || waited != c.waits {
					t.Errorf("%s after %v, want %s after %v", status, waited, c.status, c.waits)
				}
			})
		})
	}
}

// What failed before the stop, and was not read, is interrupted like everything else.
func TestStop_UnreadFailureIsAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := []agenttest.Step{agenttest.Emit(text("a"), text("b")), agenttest.Fail(errBroken)}
		_, events, after := stoppedRun(t, script, 1)
		expect(t, events, "text done:interrupted")
		if got := droppedIn(events); after != 0 || got != "1" {
			t.Errorf("the done came after %v and counts %s, want it at once and 1", after, got)
		}
	})
}

// A stop that races the adapter's done yields one done, wherever the two meet.
func TestStop_RacingTheDoneYieldsOneDone(t *testing.T) {
	seen := map[event.DoneStatus]int{}
	for i := range testkit.Size(400, 20_000) {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		r := scripted(t, agenttest.Emit(text("a")), yieldSome(rng.IntN(6)), agenttest.Obstinate(), agenttest.Done("token"))
		ctx, cancel := context.WithCancel(t.Context())
		wait := yieldSome(rng.IntN(6))
		go func() {
			wait(nil)
			cancel()
		}()
		events := collect(t, r.Run(ctx, agent.Request{}))
		done := doneOf(events)
		seen[done.Status]++
		if want := map[bool]string{true: "token"}[len(events) > 0 && done.Status == event.DoneSuccess]; r.ResumeToken() != want {
			t.Fatalf("%s, and the runner remembers %q, want %q", words(events), r.ResumeToken(), want)
		}
	}
	t.Log(seen)
}

// yieldSome lets others run.
func yieldSome(n int) agenttest.Step {
	return func(*agenttest.Run) {
		for range n {
			runtime.Gosched()
		}
	}
}

// The context that the adapter gets carries the values of the caller's.
func TestRunner_AdapterGetsTheValuesOfTheContext(t *testing.T) {
	type key struct{}
	var got any
	look := func(r *agenttest.Run) { got = r.Context.Value(key{}) }
	collect(t, scripted(t, look, agenttest.Done("")).Run(context.WithValue(t.Context(), key{}, "v"), agent.Request{}))
	if got != "v" {
		t.Errorf("got %v, want v", got)
	}
}

// A recording that is read to its end comes through as it is.
func TestRunner_RecordingComesThroughUnchanged(t *testing.T) {
	events := collect(t, newRunner(t, agenttest.New(append(recording(), agenttest.Done(""))...), nil).Run(t.Context(), agent.Request{}))
	if len(events) != len(recorded)+1 {
		t.Fatalf("got %d events, want %d", len(events), len(recorded)+1)
	}
	for i, e := range events[:len(recorded)] {
		want := recorded[i]
		want.Kind, want.Agent, want.RunID, want.Seq, want.Role = want.Payload.EventKind(), "scripted", e.RunID, int64(i+1), role
		if got, want := fmt.Sprintf("%+v", e), fmt.Sprintf("%+v", want); got != want {
			t.Errorf("event %d: got %s, want %s", i+1, got, want)
		}
	}
}
