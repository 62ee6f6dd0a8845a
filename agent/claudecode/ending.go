// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"slices"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
)

// An ending is the last events of a run, the done event apart.
type ending struct {
	before []event.Event
	last   event.Event
	done   event.Done
}

func newEnding(events []event.Event) *ending {
	n := len(events) - 1
	e := &ending{before: slices.Clone(events[:n]), last: events[n]}
	e.done, _ = e.last.Payload.(event.Done)
	return e
}

func (e *ending) fail(code string, cause error) {
	e.dropError()
	failure := e.last
	failure.Kind = event.KindError
	failure.Payload = event.Error{Code: code, Message: cause.Error(), Next: advice.Of(cause), Cause: cause}
	e.before = append(e.before, failure)
	e.done.Status, e.done.Result, e.done.Cause = event.DoneError, cause.Error(), cause
}

// interrupt makes it the ending of a run that was stopped, unless it had come to an end of its own
// before. An error is not such an end: it is how stopped turns end. Nor is the success of a command of the
// CLI, such as /compact, that was cancelled.
func (e *ending) interrupt(cause error, cancelled bool) {
	switch {
	case e.done.Status == event.DoneError, e.done.Status == event.DoneSuccess && cancelled:
		e.dropError()
		e.done.Status, e.done.Result = event.DoneInterrupted, ""
	case e.done.Status == event.DoneInterrupted:
	default:
		return
	}
	e.done.Reason, e.done.Cause = cause.Error(), cause
}

// partial notes that something may not have been counted.
func (e *ending) partial() {
	if tokens := e.done.Usage.Tokens; tokens != nil {
		tokens.Coverage = event.CoveragePartial
	}
}

func (e *ending) dropError() {
	e.before = slices.DeleteFunc(e.before, func(e event.Event) bool {
		failure, ok := e.Payload.(event.Error)
		return ok && !failure.Recoverable
	})
}

func (e *ending) amend(change func(*agent.End)) {
	end := agent.EndOf(e.last)
	change(&end)
	e.describe(agent.EndDetails, end)
}

func (e *ending) events() []event.Event {
	e.last.Payload = e.done
	return append(e.before, e.last)
}
