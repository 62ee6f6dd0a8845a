// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
)

var errBroken = errors.New("the pipe broke")

// oddDone reports the kind of a done event and is of another type.
type oddDone struct{}

func (oddDone) EventKind() event.Kind { return event.KindDone }

// An adapter may fail in every way: there is one done, it is the last event, and it says what happened.
func TestRunner_EveryFailureOfAnAdapterEndsWithOneDone(t *testing.T) {
	steps := func(s ...agenttest.Step) []agenttest.Step { return s }
	done := agenttest.Done("t2")
	hello := agenttest.Emit(text("hello"))
	obstinate := agenttest.Obstinate()
	cases := []struct {
		name   string
		script []agenttest.Step
		want   string
		result string // part of Done.Result
		token  string // remembered afterwards
	}{
		{"emits done", steps(hello, done), "text done:success", "", "t2"},
		{"emits only done", steps(done), "done:success", "", "t2"},
		{"emits done without a token", steps(hello, agenttest.Done("")), "text done:success", "", ""},
		{"panics before the first event", steps(agenttest.Panic("boo")), "error:ADAPTER_ERROR done:error", "the adapter panicked: boo", ""},
		{"panics in the middle", steps(hello, agenttest.Panic(errBroken)), "text error:ADAPTER_ERROR done:error", "the adapter panicked: the pipe broke", ""},
		{"panics with nil", steps(hello, agenttest.Panic(nil)), "text error:ADAPTER_ERROR done:error", "panicked", ""},
		{"panics after done", steps(obstinate, done, agenttest.Panic("late")), "done:success", "", "t2"},
		{"ends its goroutine at once", steps(agenttest.Goexit()), "error:ADAPTER_ERROR done:error", "ended its goroutine", ""},
		{"ends its goroutine in the middle", steps(hello, agenttest.Goexit()), "text error:ADAPTER_ERROR done:error", "ended its goroutine", ""},
		{"ends its goroutine after done", steps(obstinate, hello, done, agenttest.Goexit()), "text done:success", "", "t2"},
		{"emits nothing", nil, "error:MISSING_DONE done:error", "without saying done", ""},
		{"ends early", steps(hello), "text error:MISSING_DONE done:error", "without saying done", ""},
		{"fails before the first event", steps(agenttest.Fail(errBroken)), "error:ADAPTER_ERROR done:error", "the pipe broke", ""},
		{"fails in the middle", steps(hello, agenttest.Fail(errBroken)), "text error:ADAPTER_ERROR done:error", "the pipe broke", ""},
		{"fails after done", steps(obstinate, done, agenttest.Fail(errBroken)), "done:success", "", "t2"},
		{"fails twice", steps(obstinate, agenttest.Fail(errBroken), agenttest.Fail(errors.New("again"))), "error:ADAPTER_ERROR done:error", "the pipe broke", ""},
		{"emits done after it failed", steps(obstinate, agenttest.Fail(errBroken), done), "error:ADAPTER_ERROR done:error", "the pipe broke", ""},
		{"fails with an error that panics", steps(agenttest.Fail((*badError)(nil))), "error:ADAPTER_ERROR done:error", "<nil>", ""},
		{"emits done twice", steps(obstinate, hello, done, agenttest.Done("t3")), "text done:success", "", "t2"},
		{"goes on after done", steps(obstinate, done, hello, hello), "done:success", "", "t2"},
		{"yields no payload", steps(agenttest.EmitEvents(event.Event{Kind: event.KindText})), "error:ADAPTER_ERROR done:error", "without a payload", ""},
		{"yields a pointer to done", steps(agenttest.Emit(&event.Done{Status: event.DoneMaxTurns, ResumeToken: "t4"})), "done:max_turns", "", "t4"},
		{"yields a pointer to an error", steps(agenttest.Emit(&event.Error{Code: "BAD", Message: "bad"}), done), "error:BAD done:success", "", "t2"},
		{"yields a nil pointer to done", steps(agenttest.Emit((*event.Done)(nil))), "error:ADAPTER_ERROR done:error", "panicked", ""},
		{"yields a pointer to a call", steps(agenttest.Emit(&event.ToolCall{ID: "a"}, &event.ToolResult{ID: "a"}), done), "tool_use:a tool_result:a done:success", "", "t2"},
		{"yields another type as done", steps(agenttest.Emit(oddDone{})), "error:ADAPTER_ERROR done:error", "a done event that is a agent_test.oddDone", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := agenttest.New(agenttest.Done("t1"))
			r := newRunner(t, a, nil)
			collect(t, r.Run(t.Context(), agent.Request{}))

			a.Steps = c.script
			events := collect(t, r.Run(t.Context(), agent.Request{}))
			expect(t, events, c.want)
			if got := doneOf(events).Result; !strings.Contains(got, c.result) {
				t.Errorf("the done says %q, want %q in it", got, c.result)
			}
			if got := r.ResumeToken(); got != c.token {
				t.Errorf("the runner remembers %q, want %q", got, c.token)
			}
		})
	}
}

type badError struct{ text string }

func (e *badError) Error() string { return e.text }

// nilStream is an adapter that returns no stream at all.
type nilStream struct{ *agenttest.Adapter }

func (nilStream) Run(context.Context, agent.Request) iter.Seq2[event.Event, error] { return nil }

func TestRunner_AdapterWithoutAStreamHasFailed(t *testing.T) {
	events := collect(t, newRunner(t, nilStream{agenttest.New()}, nil).Run(t.Context(), agent.Request{}))
	expect(t, events, "error:ADAPTER_ERROR done:error")
	if got, want := doneOf(events).Result, "the adapter returned no stream"; got != want {
		t.Errorf("the done says %q, want %q", got, want)
	}
}

// panickyRun panics before there is a stream.
type panickyRun struct{ *agenttest.Adapter }

func (panickyRun) Run(context.Context, agent.Request) iter.Seq2[event.Event, error] {
	panic("no stream")
}

func TestRunner_AdapterThatPanicsBeforeItsStreamHasFailed(t *testing.T) {
	events := collect(t, newRunner(t, panickyRun{agenttest.New()}, nil).Run(t.Context(), agent.Request{}))
	expect(t, events, "error:ADAPTER_ERROR done:error")
}

// An error of the adapter is reported when it comes, not when the adapter deigns to return.
func TestRunner_FailureIsReportedBeforeTheAdapterReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		r := scripted(t, agenttest.Obstinate(), agenttest.Fail(errBroken), agenttest.Block(), agenttest.Sleep(time.Second))
		var reported time.Duration
		for e := range r.Run(t.Context(), agent.Request{}) {
			if e.Kind == event.KindDone {
				reported = time.Since(begun)
			}
		}
		if reported != 0 {
			t.Errorf("the done came after %v, want it at once", reported)
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the loop was over after %v, want it to wait for the adapter", took)
		}
	})
}

func TestErrorEvent_CauseIsTheErrorOfTheAdapter(t *testing.T) {
	missing := agent.Readiness{State: agent.StateMissing, Detail: "no such program"}
	events := collect(t, newRunner(t, &agenttest.Adapter{Readiness: missing}, nil).Run(t.Context(), agent.Request{}))
	expect(t, events, "error:ADAPTER_ERROR done:error")
	failure := events[0].Payload.(event.Error)
	if !errors.Is(failure, agent.ErrUnavailable) || failure.Recoverable {
		t.Errorf("got %+v, want one that wraps ErrUnavailable and is not recoverable", failure)
	}
}

// A done that the runner emits in the adapter's place has the adapter's session, and what was seen of its calls.
func TestDone_OfTheRunnerHasSessionAndCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := scripted(t,
			agenttest.EmitEvents(
				event.Event{SessionID: "s1", Payload: event.Init{}},
				event.Event{SessionID: "s2", Payload: call("a", "Read")},
				event.Event{Payload: event.ToolResult{ID: "a"}},
				event.Event{Payload: call("b", "Read")},
				event.Event{Payload: call("b", "Read")}, // emitted twice
				event.Event{Payload: event.ToolResult{ID: "other"}},
			),
			agenttest.Sleep(3*time.Second),
		)
		events := collect(t, r.Run(t.Context(), agent.Request{}))
		done := doneOf(events)
		if done.Usage.ToolUses != 2 || done.Usage.Tokens != nil || done.Usage.Cost != nil {
			t.Errorf("usage %+v, want 2 tool uses and nothing invented", done.Usage)
		}
		if done.Duration != 3*time.Second {
			t.Errorf("duration %v, want 3s", done.Duration)
		}
		for _, e := range events[1:] {
			if e.SessionID != "s2" {
				t.Errorf("%s has the session %q, want s2", e.Kind, e.SessionID)
			}
		}
	})
}

// A payload whose kind changes cannot smuggle a second done in.
func TestRunner_ReadsTheKindOfAPayloadOnce(t *testing.T) {
	var kinds []event.Kind
	for e := range scripted(t, agenttest.Emit(new(fickle)), agenttest.Done("")).Run(t.Context(), agent.Request{}) {
		kinds = append(kinds, e.Kind)
	}
	if diff := cmp.Diff([]event.Kind{"x:harmless", event.KindDone}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// fickle turns into a done event once it has been looked at.
type fickle struct{ asked int }

func (f *fickle) EventKind() event.Kind {
	f.asked++
	if f.asked > 1 {
		return event.KindDone
	}
	return "x:harmless"
}

// What goes wrong after the end is in the log, since no event can report it.
func TestRunner_FailuresAfterTheEndAreLogged(t *testing.T) {
	cases := []struct {
		name string
		late agenttest.Step
		want string
	}{
		{"an error", agenttest.Fail(errBroken), "the adapter failed after its end"},
		{"a panic", agenttest.Panic("late"), "the adapter panicked"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			a := agenttest.New(agenttest.Obstinate(), agenttest.Done(""), c.late)
			r := newRunner(t, a, &agent.RunnerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			collect(t, r.Run(t.Context(), agent.Request{}))
			if !strings.Contains(log.String(), c.want) {
				t.Errorf("the log has %q, want %q in it", log.String(), c.want)
			}
		})
	}
}

// An adapter that never returns is left behind in the end, and the log reports it.
func TestRunner_AdapterThatNeverReturnsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a := agenttest.New(agenttest.Obstinate(), agenttest.Done("t"), agenttest.Sleep(time.Hour))
		r := newRunner(t, a, &agent.RunnerOptions{CloseTimeout: 3 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		begun := time.Now()
		expect(t, collect(t, r.Run(t.Context(), agent.Request{})), "done:success")
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("the loop ended after %v, want 3s", took)
		}
		if !strings.Contains(log.String(), "left behind") {
			t.Errorf("the log has %q, want it to say that the adapter was left behind", log.String())
		}
		time.Sleep(time.Hour) // now it is gone too
	})
}
