// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	_ "github.com/drover-agents/drover/internal/testkit"
)

// A plan is a run with an adapter and a reader that do whatever they like.
type plan struct {
	steps  []string      // what the adapter does
	req    agent.Request // how it is begun; a run before has left the token "old"
	at     int           // the event at which the reader acts
	act    string        // what it does then
	stopIn time.Duration // when the context ends by itself; zero means never
}

var behaviours = []string{
	"text", "text", "call a", "call b", "result a", "result b", "decide a", "decide b", "ask a",
	"sleep 100ms", "sleep 600ms", "obstinate", "block", "done", "done with token",
	"fail", "panic", "goexit", "no payload", "other done",
}

func drawPlan(t *rapid.T) plan {
	return plan{
		steps:  rapid.SliceOfN(rapid.SampledFrom(behaviours), 0, 14).Draw(t, "steps"),
		req:    rapid.SampledFrom([]agent.Request{{}, {Resume: "named"}, {Fresh: true}}).Draw(t, "request"),
		at:     rapid.IntRange(1, 12).Draw(t, "at"),
		act:    rapid.SampledFrom([]string{"read", "break", "cancel", "sleep", "cancel and sleep", "sleep and cancel"}).Draw(t, "act"),
		stopIn: rapid.SampledFrom([]time.Duration{0, 1, 50 * time.Millisecond, 150 * time.Millisecond, time.Second}).Draw(t, "stop"),
	}
}

// step makes a step of its name. out counts what the adapter emitted before its end.
func step(name string, out *emissions) agenttest.Step {
	switch name {
	case "text":
		return out.emit(text("x"))
	case "call a", "call b":
		return out.emit(call(name[5:], "Read"))
	case "result a", "result b":
		return out.emit(event.ToolResult{ID: event.CallID(name[7:]), Status: event.ToolSuccess})
	case "decide a", "decide b":
		return agenttest.Decide(call(name[7:], "Read"))
	case "ask a":
		return agenttest.Decide(call("a", "Bash"))
	case "sleep 100ms":
		return agenttest.Sleep(100 * time.Millisecond)
	case "sleep 600ms":
		return agenttest.Sleep(600 * time.Millisecond)
	case "obstinate":
		return agenttest.Obstinate()
	case "block":
		return agenttest.Block()
	case "done":
		return out.emit(event.Done{Status: event.DoneSuccess, Result: "mine"})
	case "done with token":
		return out.emit(event.Done{Status: event.DoneSuccess, Result: "mine", ResumeToken: "new"})
	case "fail":
		return agenttest.Fail(errBroken)
	case "panic":
		return agenttest.Panic("boo")
	case "goexit":
		return agenttest.Goexit()
	case "no payload":
		return agenttest.EmitEvents(event.Event{})
	}
	return agenttest.Emit(oddDone{})
}

// emissions are what the adapter has emitted.
type emissions struct {
	calls  map[string]bool
	events int
	over   bool
}

func (w *emissions) emit(p event.Payload) agenttest.Step {
	return func(r *agenttest.Run) {
		switch p := p.(type) {
		case event.Done:
			w.over = true
		case event.ToolCall:
			w.calls[string(p.ID)] = true
		}
		if !w.over {
			w.events++
		}
		r.Yield(event.Event{SessionID: "s", Payload: p}, nil)
	}
}

// A seen is what came of a plan.
type seen struct {
	plan
	emissions
	events  []event.Event
	broke   bool
	kept    string        // the token afterwards
	late    time.Duration // from the end of the context to the done, while the reader was not busy
	stopped bool          // the context had ended then
	left    int64         // adapters that go on
}

func (p plan) carryOut(t *testing.T) (s seen) {
	s = seen{plan: p, emissions: emissions{calls: map[string]bool{}}}
	scripted := agenttest.New(agenttest.Done("old"))
	a := &watched{Adapter: scripted}
	r := newRunner(t, a, &agent.RunnerOptions{CloseTimeout: time.Hour, Defaults: agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}}})
	collect(t, r.Run(t.Context(), agent.Request{}))
	scripted.Steps = nil
	for _, name := range p.steps {
		scripted.Steps = append(scripted.Steps, step(name, &s.emissions))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if p.stopIn > 0 {
		time.AfterFunc(p.stopIn, cancel)
	} else {
		time.AfterFunc(time.Hour, cancel) // for those that block
	}
	var end atomic.Pointer[time.Time]
	context.AfterFunc(ctx, func() { end.Store(new(time.Now())) })
	free := time.Now() // since when the reader waits
	for e := range r.Run(ctx, p.req) {
		s.events = append(s.events, e)
		synctest.Wait()
		if at := end.Load(); at != nil && e.Kind == event.KindDone {
			s.stopped, s.late = true, time.Since(latest(free, *at))
		}
		if len(s.events) == p.at && s.react(cancel) {
			s.broke = true
			break
		}
		free = time.Now()
	}
	s.kept, s.left = r.ResumeToken(), a.running.Load()
	return s
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// react is what the reader does at its event. It reports whether it leaves.
func (s *seen) react(cancel func()) bool {
	switch s.act {
	case "break":
		return true
	case "cancel":
		cancel()
	case "sleep":
		time.Sleep(300 * time.Millisecond)
	case "cancel and sleep":
		cancel()
		time.Sleep(300 * time.Millisecond)
	case "sleep and cancel":
		time.Sleep(300 * time.Millisecond)
		cancel()
	}
	return false
}

// problem reports which promise was broken.
func (s seen) problem() error {
	if s.left != 0 {
		return errors.New("the loop is over and the adapter is not")
	}
	if err := s.misplaced(); err != nil {
		return err
	}
	if err := numbered(s.events); err != nil || s.broke {
		return err
	}
	if err := wellFormed(s.events); err != nil {
		return err
	}
	if s.late > 500*time.Millisecond {
		return fmt.Errorf("the done came %v after the end of the context", s.late)
	}
	return s.wrongDone()
}

// misplaced finds an event of the host about a call that comes before the call of the adapter.
func (s seen) misplaced() error {
	decided, known := map[string]bool{}, map[string]bool{}
	for _, e := range s.events {
		switch id := e.CallID(); e.Kind {
		case event.KindDecision, event.KindPermissionRequest:
			decided[string(id)] = true
		case event.KindToolUse:
			if decided[string(id)] && !known[string(id)] {
				return fmt.Errorf("the decision about %s comes before its tool_use", id)
			}
			known[string(id)] = true
		case event.KindToolResult:
			known[string(id)] = true
		}
	}
	return nil
}

// wrongDone checks the done by who made it.
func (s seen) wrongDone() error {
	done := doneOf(s.events)
	inbound := map[string]string{"": "old", "named": "named"}[s.req.Resume]
	if s.req.Fresh {
		inbound = ""
	}
	switch {
	case done.Result == "mine":
		return s.adaptersDone(done)
	case done.Status == event.DoneInterrupted && s.stopped && s.kept == "" && done.ResumeToken == "":
		return nil // the done of the scripted adapter
	case done.Status == event.DoneInterrupted:
		if done.ResumeToken != inbound || s.kept != "old" {
			return fmt.Errorf("interrupted with token %q, and %q is remembered; want %q and old", done.ResumeToken, s.kept, inbound)
		}
		return s.wrongCount(done)
	case done.Status == event.DoneError:
		if n := len(s.events); n < 2 || s.events[n-2].Kind != event.KindError || s.kept != "" {
			return fmt.Errorf("failed without an error event, or with the token %q", s.kept)
		}
		return s.wrongCount(done)
	}
	return fmt.Errorf("neither the adapter nor the runner emits %+v", done)
}

func (s seen) adaptersDone(done event.Done) error {
	if s.kept != done.ResumeToken {
		return fmt.Errorf("the adapter's token is %q, remembered is %q", done.ResumeToken, s.kept)
	}
	delivered := 0
	for _, e := range s.events {
		if e.Kind != event.KindPermissionRequest && e.Kind != event.KindDecision && e.Kind != event.KindDone {
			delivered++
		}
	}
	dropped, _ := strconv.Atoi(droppedIn(s.events))
	if delivered+dropped < s.emissions.events || !s.stopped && dropped > 0 {
		return fmt.Errorf("%d events were emitted, %d delivered and %d dropped", s.emissions.events, delivered, dropped)
	}
	return nil
}

// wrongCount compares the tool uses of a made done with what the adapter emitted and what was delivered.
func (s seen) wrongCount(done event.Done) error {
	delivered := map[string]bool{}
	for _, e := range s.events {
		if c, isCall := e.Payload.(event.ToolCall); isCall {
			delivered[string(c.ID)] = true
		}
	}
	if n := done.Usage.ToolUses; n < len(delivered) || n > len(s.calls) {
		return fmt.Errorf("%d tool uses, want between %d and %d", n, len(delivered), len(s.calls))
	}
	return nil
}

// Whatever adapter and reader do, the promises hold.
func TestRunner_PromisesHoldForAnyAdapterAndReader(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		var s seen
		synctest.Test(t, func(t *testing.T) { s = p.carryOut(t) })
		if err := s.problem(); err != nil {
			rt.Fatalf("%v\n  got %s", err, words(s.events))
		}
	})
}
