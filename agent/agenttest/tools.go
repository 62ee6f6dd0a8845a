// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// Tools is the catalogue of the tools that [Perform] can make calls of. Their names and fields are invented, so that
// what works for them knows no agent:
//
//   - inscribe {"at": file, "text": text} writes a file, peruse {"at": file} reads one.
//   - amend {"changes": [{"at": file, "text": text}]} writes several.
//   - perform {"line": "make FILE"} runs a command, of which there is this one.
//   - consult {"site": host} needs the network, and does nothing.
//   - answer gives a structured answer.
func Tools() *tool.Catalogue { return tools }

var tools = &tool.Catalogue{
	Agent: "scripted", Others: tool.Fields{Paths: []string{"at"}},
	ReadRule: "peruse", WriteRule: "inscribe", CommandRule: "perform", AnswerTool: "answer",
	Natives: []tool.Native{
		{Name: "inscribe", Risk: tool.Mutates, Needs: tool.FileWrite, Files: tool.WritesFile, Verb: "write"},
		{Name: "amend", Risk: tool.Mutates, Needs: tool.FileWrite, Files: tool.WritesFile, Fields: tool.Fields{Scan: amended}, Verb: "change"},
		{Name: "peruse", Risk: tool.ReadOnly, Files: tool.ReadsFile, Verb: "read"},
		{Name: "perform", Risk: tool.Mutates | tool.Dangerous, Needs: tool.ShellExecute, Fields: tool.Fields{Command: "line"}, Shell: true, Verb: "run"},
		{Name: "consult", Risk: tool.ReadOnly, Needs: tool.NetworkAccess, Fields: tool.Fields{Host: "site"}, Verb: "fetch"},
		{Name: "answer", Risk: tool.ReadOnly, Plumbing: true},
	},
}

// A writing is what inscribe writes, and one change of amend.
type writing struct{ At, Text string }

type amendment struct{ Changes []writing }

func amended(input json.RawMessage) (paths []string, ok bool) {
	var a amendment
	err := json.Unmarshal(input, &a)
	for _, change := range a.Changes {
		paths = append(paths, change.At)
	}
	return paths, err == nil
}

// Perform makes a call of one of [Tools]: it asks the host, and performs the call if the host allows it and the
// run goes on.
func Perform(call event.ToolCall) Step {
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
		return nil, errors.New("the host replaced the input by a value that is not JSON")
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
