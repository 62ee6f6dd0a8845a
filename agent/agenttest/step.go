// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"encoding/json"
	"runtime"
	"time"

	"github.com/drover-agents/drover/event"
)

// A Step is one step of a script. Write your own where those of this package do not do.
type Step func(r *Run)

// Emit yields one event for each payload.
func Emit(payloads ...event.Payload) Step {
	return func(r *Run) {
		for _, p := range payloads {
			r.Yield(event.Event{Payload: p}, nil)
		}
	}
}

// EmitEvents yields events as they are.
func EmitEvents(events ...event.Event) Step {
	return func(r *Run) {
		for _, e := range events {
			r.Yield(e, nil)
		}
	}
}

// Done yields a done event: success, with a token for the next run. Use [Emit] for another one.
func Done(resumeToken string) Step {
	return Emit(event.Done{Status: event.DoneSuccess, ResumeToken: resumeToken})
}

// Fail yields an error.
func Fail(err error) Step {
	return func(r *Run) { r.Yield(event.Event{}, err) }
}

// Panic panics.
func Panic(value any) Step {
	return func(*Run) { panic(value) }
}

// Goexit ends the goroutine of the adapter.
func Goexit() Step {
	return func(*Run) { runtime.Goexit() }
}

// Block waits until the context of the run ends.
func Block() Step {
	return func(r *Run) { <-r.Context.Done() }
}

// Sleep waits, and does not care whether the context ends.
func Sleep(d time.Duration) Step {
	return func(*Run) { time.Sleep(d) }
}

// Obstinate makes the adapter go on from here, whether or not the reader wants more events.
func Obstinate() Step {
	return func(r *Run) { r.obstinate = true }
}

// Decide asks the host about a call and waits for the answer, as an agent does that asks before it reports
// of the call. Without a host it does nothing.
func Decide(call event.ToolCall) Step {
	return func(r *Run) { decide(r, call) }
}

// UseTool calls a tool as agents do: it asks the host in another goroutine, meanwhile yields the
// tool_use, and when the host has decided the tool_result: output, or that it was denied. Without a host
// the call is allowed.
func UseTool(call event.ToolCall, output string) Step {
	return func(r *Run) {
		decided := make(chan event.Decision, 1)
		go func() { decided <- decide(r, call) }()
		r.Yield(event.Event{Payload: call}, nil)
		result, text := event.ToolResult{ID: call.ID, Name: call.Name, Status: event.ToolSuccess}, output
		if d := <-decided; d.Verdict != event.Allow {
			result.Status, text = event.ToolDenied, d.Reason
			result.Failure = &event.ToolFailure{Code: "denied", Message: d.Reason}
		}
		result.Output, _ = json.Marshal(text) // a string
		r.Yield(event.Event{Payload: result}, nil)
	}
}

func decide(r *Run, call event.ToolCall) event.Decision {
	if r.Request.Host == nil {
		return event.Decision{Verdict: event.Allow}
	}
	return r.Request.Host.Decide(r.Context, call)
}
