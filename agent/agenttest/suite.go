// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
)

// A Subject is an adapter to be tested.
type Subject struct {
	// New makes an adapter whose agent is there.
	New func(t *testing.T) agent.Adapter
	// Missing makes an adapter whose agent is not there. Nil leaves the tests about that out.
	Missing func(t *testing.T) agent.Adapter
	// Request is of a run that ends by itself, with success and after at least one other event. Let the
	// agent call a tool in it: whether the adapter asks its host first can only be seen then.
	Request agent.Request
	// Calls makes an adapter whose agent makes these calls of its own tools, one after the other and whatever
	// becomes of them, and then ends. Nil leaves the tests about its tools out.
	Calls func(t *testing.T, calls []event.ToolCall) agent.Adapter
	// Changes are calls, by name and input, that each make the file, where they are allowed: at least one for
	// each way in which the agent writes files or runs commands. The file is in Request.Dir.
	Changes func(file string) []event.ToolCall
	// Patience is how long a run may take to end when it has been stopped. Zero means 20 seconds.
	Patience time.Duration
}

// TestAdapter tests whether an adapter does what [agent.Adapter] asks for. It makes about twelve runs, and nine
// more with Subject.Calls.
func TestAdapter(t *testing.T, s Subject) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			s := s
			if s.Patience == 0 {
				s.Patience = 20 * time.Second
			}
			if c.missing && s.Missing == nil {
				t.Skip("the subject has no adapter of a missing agent: set Subject.Missing to run it")
			}
			newAdapter := s.New
			if c.missing {
				newAdapter = s.Missing
			}
			if err := c.check(t.Context(), newAdapter(t), s); err != nil {
				t.Error(err)
			}
		})
	}
	for _, c := range toolChecks {
		t.Run(c.name, func(t *testing.T) {
			if s.Calls == nil {
				t.Skip("the subject does not define how its agent calls tools: set Subject.Calls and Changes to run it")
			}
			if err := c.check(t, s); err != nil {
				t.Error(err)
			}
		})
	}
}

// checks are the promises of an adapter. Each check returns the fault.
var checks = []struct {
	name    string
	missing bool
	check   func(ctx context.Context, a agent.Adapter, s Subject) error
}{
	{"it has one name", false, hasName},
	{"it is ready where its agent is", false, isReady},
	{"its last event is done", false, endsWithDone},
	{"a break ends it", false, endsOnBreak},
	{"the end of the context ends it", false, endsOnCancel},
	{"it does not begin when the context has ended", false, endsBeforeBegin},
	{"its runs do not disturb each other", false, runsConcurrently},
	{"it asks its host about every tool call", false, asksHost},
	{"it refuses permissions that no host enforces", false, refusesPermissions},
	{"it can be made and asked where its agent is missing", true, reportsMissing},
	{"a run without the agent yields one error and no event", true, failsMissing},
}

func hasName(_ context.Context, a agent.Adapter, _ Subject) error {
	if name := a.Agent(); name == "" || a.Agent() != name {
		return fmt.Errorf("Agent() = %q and then %q, want one name", name, a.Agent())
	}
	return nil
}

func isReady(ctx context.Context, a agent.Adapter, _ Subject) error {
	if r := a.Ready(ctx); !r.Available() || r.State == "" {
		return fmt.Errorf("Ready = %+v, want a state in which it can be run", r)
	}
	return nil
}

func endsWithDone(ctx context.Context, a agent.Adapter, s Subject) error {
	events, err := collect(ctx, a, s.Request)
	switch {
	case err != nil:
		return fmt.Errorf("the run failed: %w", err)
	case len(events) < 2:
		return fmt.Errorf("the run had %d events, want at least one and a done", len(events))
	}
	done, _ := events[len(events)-1].Payload.(event.Done)
	if done.Status != event.DoneSuccess {
		return fmt.Errorf("the last event is a %T with status %q, want a successful Done", events[len(events)-1].Payload, done.Status)
	}
	return nil
}

// collect reads a run to its end and returns the fault of its events, if any.
func collect(ctx context.Context, a agent.Adapter, req agent.Request) ([]event.Event, error) {
	var events []event.Event
	var failure error
	over := false
	for e, err := range a.Run(ctx, req) {
		switch {
		case over:
			return events, fmt.Errorf("something comes after the end: the event %v, or an error: %t", e.Payload, err != nil)
		case err != nil:
			failure, over = err, true
			continue
		case e.Payload == nil:
			return events, fmt.Errorf("event %d has no payload", len(events)+1)
		case e.RunID != "" || e.Seq != 0 || e.Position != event.Position{} || e.Role != "":
			return events, fmt.Errorf("event %d has RunID %q, Seq %d, Position %s, Role %q, which are the runner's to give", len(events)+1, e.RunID, e.Seq, e.Position, e.Role)
		}
		events = append(events, e)
		_, over = e.Payload.(event.Done)
	}
	return events, failure
}

func endsOnBreak(ctx context.Context, a agent.Adapter, s Subject) error {
	return within(s.Patience, func() error {
		for _, err := range a.Run(ctx, s.Request) {
			return err
		}
		return errors.New("the run had no events")
	})
}

func endsOnCancel(ctx context.Context, a agent.Adapter, s Subject) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return within(s.Patience, func() error {
		seen := 0
		for e, err := range a.Run(ctx, s.Request) {
			if e.Payload == nil && err == nil {
				return errors.New("an event has no payload")
			}
			seen++
			cancel()
		}
		if seen == 0 {
			return errors.New("the run had no events")
		}
		return nil
	})
}

func endsBeforeBegin(ctx context.Context, a agent.Adapter, s Subject) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return within(s.Patience, func() error {
		events, err := collect(ctx, a, s.Request)
		if len(events) == 0 {
			return nil // it failed, or yielded no event
		}
		done, isDone := events[len(events)-1].Payload.(event.Done)
		if err == nil && (!isDone || done.Status != event.DoneInterrupted) {
			return fmt.Errorf("the run ended with %+v, want an error or an interrupted Done", events[len(events)-1].Payload)
		}
		return nil
	})
}

// within runs f and returns an error if it takes too long.
func within(patience time.Duration, f func() error) error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	select {
	case err := <-result:
		return err
	case <-time.After(patience):
		return fmt.Errorf("the run did not end within %v", patience)
	}
}

func runsConcurrently(ctx context.Context, a agent.Adapter, s Subject) error {
	const runs = 3
	var failures [runs]error
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() { failures[i] = endsWithDone(ctx, a, s) })
	}
	all.Wait()
	return errors.Join(failures[:]...)
}

// A denier is a host that denies every call and keeps the ids of those it was asked about.
type denier struct{ asked sync.Map }

func (d *denier) Decide(_ context.Context, call event.ToolCall) event.Decision {
	d.asked.Store(call.ID, true)
	return event.Decision{Verdict: event.Deny, Reason: "The suite denies every call."}
}

// asksHost has a host deny all calls: a call without a question, or one that succeeds all the same, is not
// under the host.
func asksHost(ctx context.Context, a agent.Adapter, s Subject) error {
	var host denier
	req := s.Request
	req.Host = &host
	events, err := collect(ctx, a, req)
	if err != nil {
		return fmt.Errorf("the run with a host failed: %w", err)
	}
	for _, e := range events {
		result, ok := e.Payload.(event.ToolResult)
		if !ok {
			continue
		}
		if _, ok := host.asked.Load(result.ID); !ok {
			return fmt.Errorf("the host was not asked about the call %q of %s", result.ID, result.Name)
		}
		if result.Status == event.ToolSuccess {
			return fmt.Errorf("the call %q of %s succeeded, though the host denied it", result.ID, result.Name)
		}
	}
	return nil
}

func refusesPermissions(ctx context.Context, a agent.Adapter, s Subject) error {
	req := s.Request
	req.Host = nil
	setZero(&req.Permissions) // which asks about everything
	if events, err := collect(ctx, a, req); len(events) > 0 || err == nil {
		return fmt.Errorf("the run with permissions and no host had %d events, and an error: %t; want an error and no event", len(events), err != nil)
	}
	return nil
}

func setZero[T any](p **T) { *p = new(T) }

func reportsMissing(ctx context.Context, a agent.Adapter, _ Subject) error {
	if r := a.Ready(ctx); r.State != agent.StateMissing || r.Detail == "" || r.Repair == "" {
		return fmt.Errorf("Ready = %+v, want missing, with Detail and Repair", r)
	}
	return hasName(ctx, a, Subject{})
}

func failsMissing(ctx context.Context, a agent.Adapter, s Subject) error {
	events, err := collect(ctx, a, s.Request)
	switch {
	case len(events) > 0 || err == nil:
		return fmt.Errorf("the run had %d events and no error of its own, want one error and no event", len(events))
	case !errors.Is(err, agent.ErrUnavailable):
		return fmt.Errorf("the error does not wrap agent.ErrUnavailable: %w", err)
	}
	return nil
}
