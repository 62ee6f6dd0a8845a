// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/drover-agents/drover/event"
)

// performCall makes a call of one of [Tools]: it asks the host, and does what the call says if the host allows it and the
// run goes on.
func performCall(call event.ToolCall) Step {
	return func(r *Run) {
		r.Yield(event.Event{Payload: call}, nil)
		result := event.ToolResult{ID: call.ID, Name: call.Name, Status: event.ToolSuccess}
		fail := func(status event.ToolStatus, text string) {
			result.Status, result.Failure = status, &event.ToolFailure{Code: string(status), Message: text}
			result.Output, _ = json.Marshal(text)
		}
		switch input, err := permitted(r, call); {
		case r.Context.Err() != nil:
			fail(event.ToolCancelled, "The run was stopped.")
		case err != nil:
			fail(event.ToolDenied, err.Error())
		default:
			output, err := perform(call.Name, input)
			result.Output, _ = json.Marshal(output)
			if err != nil {
				fail(event.ToolError, err.Error())
			}
		}
		r.Yield(event.Event{Payload: result}, nil)
	}
}

// permitted is the input with which a call may be made, or why it may not.
func permitted(r *Run, call event.ToolCall) (input json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the host failed: %v", p)
		}
	}()
	d := decide(r, call)
	switch {
	case d.Verdict != event.Allow:
		return nil, errors.New(d.Reason)
	case d.Input == nil:
		return call.Input, nil
	case !json.Valid(d.Input):
		return nil, errors.New("the host replaced the input by something that is no JSON")
	}
	return d.Input, nil
}

func perform(name string, input json.RawMessage) (output string, err error) {
	var in struct {
		writing
		amendment
		Line string
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return "", err
	}
	switch name {
	case "inscribe":
		in.Changes = []writing{in.writing}
	case "perform":
		file, ok := strings.CutPrefix(in.Line, "make ")
		if !ok {
			return "", fmt.Errorf("there is no command %q", in.Line)
		}
		in.Changes = []writing{{At: file}}
	case "peruse":
		text, err := os.ReadFile(in.At)
		return string(text), err
	}
	for _, change := range in.Changes {
		err = errors.Join(err, os.WriteFile(change.At, []byte(change.Text), 0o644))
	}
	return "done", err
}
