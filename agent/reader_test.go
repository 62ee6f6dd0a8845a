// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// held is how many events an adapter may be ahead of its reader: those that wait, and those that the
// reader has taken with the one it looks at.
const held = 2 * 256

// count emits numbered texts and counts them.
func count(n int, emitted *atomic.Int64) agenttest.Step {
	return func(r *agenttest.Run) {
		for i := range n {
			if !r.Yield(event.Event{Payload: text(strconv.Itoa(i))}, nil) {
				return
			}
			emitted.Add(1)
		}
	}
}

func TestReader_SlowOneBlocksTheAdapterAndLosesNoEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5000
		var emitted atomic.Int64
		read := 0
		for e := range scripted(t, count(n, &emitted), agenttest.Done("")).Run(t.Context(), agent.Request{}) {
			if read%500 == 0 {
				time.Sleep(time.Minute) // as long as the adapter can go on, it does
				synctest.Wait()
				if ahead := int(emitted.Load()) - read; ahead > held {
					t.Fatalf("after %d events the adapter is %d ahead, want at most %d", read, ahead, held)
				}
			}
			if got, isText := e.Payload.(event.Text); isText && got.Content != strconv.Itoa(read) {
				t.Fatalf("event %d is %q", read, got.Content)
			}
			read++
		}
		if read != n+1 {
			t.Errorf("read %d events, want %d and the done", read, n)
		}
	})
}

// An agent waits for a decision, perhaps with a timeout of its own. The reader may sleep.
func TestDecision_DoesNotWaitForTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 1000
		var took time.Duration
		decide := func(r *agenttest.Run) {
			r.Yield(event.Event{Payload: text("first")}, nil)
			begun := time.Now()
			for i := range calls {
				r.Request.Host.Decide(r.Context, call("c"+strconv.Itoa(i), "Read"))
			}
			took = time.Since(begun)
		}
		a := agenttest.New(decide, agenttest.Done(""))
		r := newRunner(t, a, &agent.RunnerOptions{Defaults: agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}}})
		var events []event.Event
		for e := range r.Run(t.Context(), agent.Request{}) {
			events = append(events, e)
			if len(events) == 1 {
				time.Sleep(time.Hour)
			}
		}
		if took != 0 {
			t.Errorf("%d decisions took %v, want no time", calls, took)
		}
		if len(events) != calls+2 {
			t.Errorf("got %d events, want a text, %d decisions and a done", len(events), calls)
		}
	})
}

func TestDone_DoesNotWaitForRoomInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var emitted atomic.Int64
		gone := make(chan struct{})
		after := func(*agenttest.Run) { close(gone) }
		r := scripted(t, agenttest.Obstinate(), count(256, &emitted), agenttest.Done(""), after)
		events := 0
		for range r.Run(t.Context(), agent.Request{}) {
			if events == 0 {
				<-gone
			}
			events++
		}
		if events != 257 {
			t.Errorf("got %d events, want 257", events)
		}
	})
}

// A reader that leaves, at whichever event, stops the adapter and finds it gone.
func TestBreak_AtEveryEventEndsTheAdapter(t *testing.T) {
	cases := []struct {
		name   string
		script []agenttest.Step
	}{
		{"an adapter that stops", append(recording(), agenttest.Block())},
		{"one that waits for the context alone", append(append([]agenttest.Step{agenttest.Obstinate()}, recording()...), agenttest.Block())},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for stopAt := 1; stopAt <= len(recorded); stopAt++ {
				synctest.Test(t, func(t *testing.T) {
					a := &watched{Adapter: agenttest.New(c.script...)}
					r := newRunner(t, a, nil)
					var events []event.Event
					for e := range r.Run(t.Context(), agent.Request{}) {
						if events = append(events, e); len(events) == stopAt {
							break
						}
					}
					if a.running.Load() != 0 {
						t.Errorf("break at %d: the loop is over and the adapter is not", stopAt)
					}
					if err := numbered(events); err != nil || len(events) != stopAt {
						t.Errorf("break at %d: %d events, %v", stopAt, len(events), err)
					}
				})
			}
		})
	}
}

// An adapter may listen to the loop alone, or be held up in it.
func TestBreak_EndsAnAdapterThatIgnoresTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := func(r *agenttest.Run) {
			for r.Yield(event.Event{Payload: text("x")}, nil) {
				continue
			}
		}
		begun := time.Now()
		for range scripted(t, endless).Run(t.Context(), agent.Request{}) {
			synctest.Wait() // now it waits for room
			break
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v to end, want no time", took)
		}
	})
}

// A done that the adapter emits because the reader has left still has the token to go on with.
func TestBreak_KeepsTheTokenOfTheNextDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := scripted(t, agenttest.Emit(text("a")), agenttest.Obstinate(), agenttest.Block(), agenttest.Done("token"))
		for range r.Run(t.Context(), agent.Request{}) {
			break
		}
		if got := r.ResumeToken(); got != "token" {
			t.Errorf("the runner remembers %q, want token", got)
		}
	})
}

// The token is there when the done is: a reader that leaves with it can go on.
func TestResumeToken_IsStoredBeforeTheDoneIsDelivered(t *testing.T) {
	a := agenttest.New(agenttest.Done("token"))
	r := newRunner(t, a, nil)
	for e := range r.Run(t.Context(), agent.Request{}) {
		if e.Kind == event.KindDone {
			if got := r.ResumeToken(); got != "token" {
				t.Errorf("at the done the runner remembers %q, want token", got)
			}
			break
		}
	}
	collect(t, r.Run(t.Context(), agent.Request{}))
	if got := a.Requests()[1].Resume; got != "token" {
		t.Errorf("the next run resumes %q, want token", got)
	}
}

func TestReader_MayPanicOrEndItsGoroutine(t *testing.T) {
	cases := []struct {
		name  string
		leave func()
	}{
		{"panic", func() { panic("reader") }},
		{"Goexit", runtime.Goexit},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := agenttest.New(agenttest.Emit(text("a")), agenttest.Block())
			r := newRunner(t, a, nil)
			ended := make(chan any)
			go func() {
				defer func() { ended <- recover() }()
				for range r.Run(t.Context(), agent.Request{}) {
					c.leave()
				}
			}()
			if got := <-ended; c.name == "panic" && got != "reader" {
				t.Errorf("the panic that came out is %v, want the reader's", got)
			}
			a.Steps = []agenttest.Step{agenttest.Done("")}
			expect(t, collect(t, r.Run(t.Context(), agent.Request{})), "done:success")
		})
	}
}
