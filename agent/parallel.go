// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
)

// A Task is one run among several.
type Task struct {
	Runner  *Runner
	Request Request
	// Context stops this task alone. Nil means that of [Parallel].
	Context context.Context
}

// Parallel runs all tasks at once and yields their events as they come, each stream in its order.
// Events of one task share a RunID, and carry the role of its runner.
//
// Every task ends with one done event, whatever becomes of the others. A task that cannot be started has an [event.Error]
// with [event.CodeParallelTask] before it; a runner that an earlier task has is such a case. When ctx ends all tasks are
// stopped; of each, one event that was on its way may come before the done. Breaking out of the loop stops them too, and
// waits until they are gone. A slow reader holds the agents up; nothing is dropped.
func Parallel(ctx context.Context, tasks ...Task) iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		ctx, cancel := context.WithCancel(ctx)
		events := make(chan event.Event)
		var running sync.WaitGroup
		taken := map[*Runner]bool{}
		for _, t := range tasks {
			var refusal error
			switch {
			case t.Runner == nil:
				refusal = errors.New("agent: the task has no Runner")
			case taken[t.Runner]: // also if the other one happens to be over by then
				refusal = ErrBusy
			}
			taken[t.Runner] = true
			running.Go(func() { t.run(ctx, refusal, events) })
		}
		go func() {
			running.Wait()
			close(events)
		}()
		defer func() {
			cancel()
			for range events { // so that no task blocks, until all are gone
				continue
			}
		}()
		for e := range events {
			if !yield(e) {
				return
			}
		}
	}
}

// run sends the events of a task. The receiver reads until all tasks are over.
func (t Task) run(ctx context.Context, refusal error, events chan<- event.Event) {
	if refusal != nil {
		t.refused(refusal, events)
		return
	}
	ctx, cancel := t.within(ctx)
	defer cancel()
	for e, err := range t.Runner.Run(ctx, t.Request) {
		if err != nil {
			t.refused(err, events)
			return
		}
		events <- e
	}
}

// within is ctx, ended also by the task's own context.
func (t Task) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return true }
	if own := t.Context; own != nil {
		end := func() { cancel(context.Cause(own)) }
		if own.Err() != nil {
			end() // before the run could begin
		}
		stop = context.AfterFunc(own, end)
	}
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

func (t Task) refused(err error, events chan<- event.Event) {
	r := t.Runner
	if r == nil {
		r = new(Runner)
		r.opts.fill()
	}
	x := newRun(context.Background(), r)
	x.begun = r.opts.Now()
	send := func(e event.Event, _ error) bool {
		events <- e
		return true
	}
	failure := event.Error{Code: event.CodeParallelTask, Message: err.Error(), Next: advice.Of(err), Cause: err}
	x.deliver(event.Event{Kind: event.KindError, Payload: failure}, send)
	x.deliver(x.made(event.Done{Status: event.DoneError, Result: failure.Message}, situation{}), send)
}
