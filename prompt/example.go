// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A TaskExample shows the agent how a task of the section is done.
type TaskExample struct {
	// Objective is the task. It is required.
	Objective string        `json:"objective"`
	Steps     []ExampleStep `json:"steps,omitempty"`
	// Outcome describes a good result.
	Outcome string `json:"outcome,omitzero"`
}

// An ExampleStep is a tool call, or a thought where it has no tool.
type ExampleStep struct {
	// Tool is the name of a tool of the same prompt.
	Tool string `json:"tool,omitzero"`
	// Input are the arguments of the call. They must fit the tool.
	Input json.RawMessage `json:"input,omitempty"`
	// Output is the result of the call.
	Output json.RawMessage `json:"output,omitempty"`
	// Text is the reason, in words.
	Text string `json:"text,omitzero"`
}

func (e TaskExample) check(tools map[string]owned) []string {
	var bad []string
	if strings.TrimSpace(e.Objective) == "" {
		bad = append(bad, "Objective is empty")
	}
	for i, step := range e.Steps {
		if reason := step.check(tools); reason != "" {
			bad = append(bad, fmt.Sprintf("Steps[%d]: %s", i, reason))
		}
	}
	return bad
}

func (s ExampleStep) check(tools map[string]owned) string {
	if len(s.Output) > 0 && !json.Valid(s.Output) {
		return "Output is not JSON"
	}
	if s.Tool == "" {
		if strings.TrimSpace(s.Text) == "" || len(s.Input) > 0 {
			return "a step is a Tool with its Input, or a Text"
		}
		return ""
	}
	t, ok := tools[s.Tool]
	if !ok {
		return fmt.Sprintf("no section has a tool %q", s.Tool)
	}
	if t.tool.Input != nil {
		if err := t.tool.Input.Validate(s.input()); err != nil {
			return fmt.Sprintf("Input of %s: %v", s.Tool, err)
		}
		return ""
	}
	if !plainjson.IsObject(s.input()) {
		return "Input is not a JSON object"
	}
	return ""
}

func (s ExampleStep) input() json.RawMessage {
	if len(s.Input) == 0 {
		return json.RawMessage("{}")
	}
	return s.Input
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

func renderExamples(examples []TaskExample) string {
	var b strings.Builder
	for i, e := range examples {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(exampleText(e))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func cloneExamples(examples []TaskExample) []TaskExample {
	var all []TaskExample
	for _, e := range examples {
		steps := e.Steps
		e.Steps = nil
		for _, s := range steps {
			s.Input, s.Output = bytes.Clone(s.Input), bytes.Clone(s.Output)
			e.Steps = append(e.Steps, s)
		}
		all = append(all, e)
	}
	return all
}
