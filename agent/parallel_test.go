// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/testkit"
)

// task makes a task of a script. name is its agent, and distinguishes its events from others.
func task(t *testing.T, name string, steps ...agenttest.Step) agent.Task {
	t.Helper()
	return agent.Task{Runner: newRunner(t, &agenttest.Adapter{Name: name, Steps: steps}, nil)}
}

// tick emits a text n times, each after a while.
func tick(n int, every time.Duration) agenttest.Step {
	return func(r *agenttest.Run) {
		for i := range n {
			time.Sleep(every)
			r.Yield(event.Event{Payload: text(fmt.Sprint(i))}, nil)
		}
	}
}

// byRun sorts the events of several runs, and checks each stream that was read to its end.
func byRun(t *testing.T, events []event.Event) map[string][]event.Event {
	t.Helper()
	runs := map[string][]event.Event{}
	for _, e := range events {
		runs[e.RunID] = append(runs[e.RunID], e)
	}
	for _, run := range runs {
		if err := wellFormed(run); err != nil {
			t.Errorf("%v, in %s", err, words(run))
		}
	}
	return runs
}

// summary is what became of each agent: "a: text done:success; b: ...".
func summary(t *testing.T, events []event.Event) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, run := range byRun(t, events) {
		all[run[0].Agent] = words(run)
	}
	return all
}

func readAll(tasks func(yield func(event.Event) bool)) []event.Event {
	var events []event.Event
	for e := range tasks {
		events = append(events, e)
	}
	return events
}

func TestParallel_YieldsEventsInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := []agent.Task{
			task(t, "fast", tick(3, 2*time.Second), agenttest.Done("")),
			task(t, "slow", tick(2, 5*time.Second), agenttest.Done("")),
		}
		var got []string
		for e := range agent.Parallel(t.Context(), tasks...) {
			got = append(got, fmt.Sprintf("%s %d", e.Agent, e.Seq))
		}
		want := "fast 1, fast 2, slow 1, fast 3, fast 4, slow 2, slow 3"
		if strings.Join(got, ", ") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
		}
	})
}

// Whatever becomes of a task, the others go on, and each has a done.
func TestParallel_FailedTaskDoesNotEndTheOthers(t *testing.T) {
	good := task(t, "good", agenttest.Emit(text("a")), agenttest.Done(""))
	refused := task(t, "refused", agenttest.Done(""))
	refused.Request.Permissions = &gate.Permissions{Mode: "yolo"}
	events := readAll(agent.Parallel(t.Context(),
		good,
		task(t, "panics", agenttest.Emit(text("a")), agenttest.Panic("boo")),
		task(t, "fails", agenttest.Fail(errBroken)),
		task(t, "silent"),
		refused,
	))
	want := map[string]string{
		"good":    "text done:success",
		"panics":  "text error:ADAPTER_ERROR done:error",
		"fails":   "error:ADAPTER_ERROR done:error",
		"silent":  "error:MISSING_DONE done:error",
		"refused": "error:PARALLEL_TASK_ERROR done:error",
	}
	for name, got := range summary(t, events) {
		if got != want[name] {
			t.Errorf("%s: got %s, want %s", name, got, want[name])
		}
	}
	if runs := byRun(t, events); len(runs) != len(want) {
		t.Errorf("%d runs, want %d", len(runs), len(want))
	}
}

// A runner does one thing at a time. That does not depend on which task is faster.
func TestParallel_RefusesARunnerUsedTwice(t *testing.T) {
	one := task(t, "one", agenttest.Emit(text("a")), agenttest.Done("token"))
	for range 20 {
		events := readAll(agent.Parallel(t.Context(), one, one))
		var got []string
		for _, run := range byRun(t, events) {
			got = append(got, words(run))
		}
		if len(got) != 2 || !strings.Contains(strings.Join(got, ";"), "text done:success") || !strings.Contains(strings.Join(got, ";"), "error:PARALLEL_TASK_ERROR done:error") {
			t.Fatalf("got %q, want one success and one refusal", got)
		}
		for _, e := range events {
			if failure, isError := e.Payload.(event.Error); isError && !errors.Is(failure, agent.ErrBusy) {
				t.Errorf("the refusal is %v, want ErrBusy", failure)
			}
		}
		if got := one.Runner.ResumeToken(); got != "token" {
			t.Errorf("the refusal made the runner remember %q, want token", got)
		}
	}
}

func TestParallel_RefusesABusyRunner(t *testing.T) {
	busy := task(t, "busy", agenttest.Emit(text("a")), agenttest.Done(""))
	for range busy.Runner.Run(t.Context(), agent.Request{}) {
		expect(t, readAll(agent.Parallel(t.Context(), busy)), "error:PARALLEL_TASK_ERROR done:error")
	}
}

func TestParallel_WithoutTasksOrWithoutARunner(t *testing.T) {
	if events := readAll(agent.Parallel(t.Context())); len(events) != 0 {
		t.Errorf("no task: got %s, want nothing", words(events))
	}
	events := readAll(agent.Parallel(t.Context(), agent.Task{}, agent.Task{}))
	if len(events) != 4 || doneOf(events).Result != "agent: the task has no Runner" {
		t.Errorf("got %s, want an error and a done for each", words(events))
	}
}

func TestParallel_ContextStopsOneTaskOrAll(t *testing.T) {
	cause := errors.New("this one has lost")
	cases := []struct {
		name string
		stop func(all, first context.CancelCauseFunc)
		a, b string
	}{
		{"one", func(_, first context.CancelCauseFunc) { first(cause) }, "text text done:interrupted", "text text text done:success"},
		{"all", func(all, _ context.CancelCauseFunc) { all(cause) }, "text text done:interrupted", "text text done:interrupted"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stopAll := context.WithCancelCause(t.Context())
				own, stopFirst := context.WithCancelCause(context.Background())
				script := []agenttest.Step{tick(1, time.Second), tick(1, time.Second), tick(1, time.Second), agenttest.Done("")}
				a, b := task(t, "a", script...), task(t, "b", script...)
				a.Context = own
				time.AfterFunc(2500*time.Millisecond, func() { c.stop(stopAll, stopFirst) })
				events := readAll(agent.Parallel(ctx, a, b))
				if got := summary(t, events); got["a"] != c.a || got["b"] != c.b {
					t.Errorf("got %v, want a: %s, b: %s", got, c.a, c.b)
				}
				stopAll(nil)
				stopFirst(nil)
			})
		})
	}
}

// A stop of a task that stalls is over after the drain timeout, with its reason.
func TestParallel_StalledTaskIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, stop := context.WithCancelCause(t.Context())
		stalls := task(t, "a", agenttest.Obstinate(), agenttest.Sleep(10*time.Second))
		stalls.Context = own
		time.AfterFunc(time.Second, func() { stop(errors.New("enough")) })
		begun := time.Now()
		for e := range agent.Parallel(t.Context(), stalls) {
			if done := e.Payload.(event.Done); done.Reason != "enough" || time.Since(begun) != 1500*time.Millisecond {
				t.Errorf("reason %q after %v, want enough after 1.5s", done.Reason, time.Since(begun))
			}
		}
	})
}

func TestParallel_TaskWithAnEndedContextNeverRuns(t *testing.T) {
	own, stop := context.WithCancel(t.Context())
	stop()
	a := agenttest.New(agenttest.Done(""))
	events := readAll(agent.Parallel(t.Context(), agent.Task{Runner: newRunner(t, a, nil), Context: own}))
	expect(t, events, "done:interrupted")
	if len(a.Requests()) != 0 {
		t.Error("the adapter was run")
	}
}

func TestParallel_BreakWaitsForAllTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watch []*watched
		var tasks []agent.Task
		for range 5 {
			a := &watched{Adapter: agenttest.New(agenttest.Obstinate(), agenttest.Emit(text("a")), agenttest.Block(), agenttest.Sleep(time.Second), agenttest.Emit(text("b")))}
			watch = append(watch, a)
			tasks = append(tasks, agent.Task{Runner: newRunner(t, a, nil)})
		}
		begun := time.Now()
		for range agent.Parallel(t.Context(), tasks...) {
			time.Sleep(time.Second) // so that all have begun
			break
		}
		for i, a := range watch {
			if a.running.Load() != 0 || a.begun.Load() != 1 {
				t.Errorf("task %d: begun %d, %d go on", i, a.begun.Load(), a.running.Load())
			}
		}
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("took %v, want 2s: the tasks end side by side", took)
		}
	})
}

func TestParallel_SlowReaderLosesNoEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tasks []agent.Task
		n := testkit.Size(300, 5000)
		for i := range 4 {
			tasks = append(tasks, task(t, fmt.Sprint(i), tick(n, 0), agenttest.Done("")))
		}
		var events []event.Event
		for e := range agent.Parallel(t.Context(), tasks...) {
			if events = append(events, e); len(events)%100 == 0 {
				time.Sleep(time.Second)
			}
		}
		if runs := byRun(t, events); len(runs) != 4 || len(events) != 4*(n+1) {
			t.Errorf("%d events of %d runs, want %d of 4", len(events), len(runs), 4*(n+1))
		}
	})
}

// Also when all are stopped while the reader sleeps, each done arrives.
func TestParallel_NoDoneIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var tasks []agent.Task
		for i := range 10 {
			tasks = append(tasks, task(t, fmt.Sprint(i), tick(1000, time.Millisecond), agenttest.Done("")))
		}
		var events []event.Event
		for e := range agent.Parallel(ctx, tasks...) {
			if events = append(events, e); len(events) == 50 {
				cancel()
				time.Sleep(time.Minute)
			}
		}
		if runs := byRun(t, events); len(runs) != 10 {
			t.Errorf("%d runs have a done, want 10", len(runs))
		}
	})
}

func TestParallel_ReaderMayPanic(t *testing.T) {
	a := &watched{Adapter: agenttest.New(agenttest.Emit(text("a")), agenttest.Block())}
	func() {
		defer func() { _ = recover() }()
		for range agent.Parallel(t.Context(), agent.Task{Runner: newRunner(t, a, nil)}) {
			panic("reader")
		}
	}()
	if a.running.Load() != 0 {
		t.Error("the adapter goes on")
	}
}
