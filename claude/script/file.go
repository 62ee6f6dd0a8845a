// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drover-agents/drover/internal/plainjson"
)

const fileVersion = 1

// A file is the YAML form of a Script.
type file struct {
	Version      int        `yaml:"version"`
	Strict       bool       `yaml:"strict,omitempty"`
	StrictRoles  bool       `yaml:"strict_roles,omitempty"`
	CountTokens  int        `yaml:"count_tokens,omitempty"`
	IDPrefix     string     `yaml:"id_prefix,omitempty"`
	KeepRequests int        `yaml:"keep_requests,omitempty"`
	Turns        []fileTurn `yaml:"turns"`
	Default      *fileTurn  `yaml:"default,omitempty"`
}

type fileTurn struct {
	Name   string `yaml:"name,omitempty"`
	When   *Match `yaml:"when,omitempty"`
	Repeat *int   `yaml:"repeat,omitempty"`
	Always bool   `yaml:"always,omitempty"`

	Text         *string           `yaml:"text,omitempty"`
	Content      []fileBlock       `yaml:"content,omitempty"`
	Structured   jsonValue         `yaml:"structured,omitempty"`
	StopReason   string            `yaml:"stop_reason,omitempty"`
	StopSequence string            `yaml:"stop_sequence,omitempty"`
	Model        string            `yaml:"model,omitempty"`
	Usage        *Usage            `yaml:"usage,omitempty"`
	Headers      map[string]string `yaml:"headers,omitempty"`

	Delay      string `yaml:"delay,omitempty"`
	DeltaDelay string `yaml:"delta_delay,omitempty"`
	Chunk      int    `yaml:"chunk,omitempty"`

	Error *APIError  `yaml:"error,omitempty"`
	Fault *fileFault `yaml:"fault,omitempty"`
}

type fileFault struct {
	Kind  FaultKind `yaml:"kind"`
	After int       `yaml:"after,omitempty"`
	Error *APIError `yaml:"error,omitempty"`
}

// A fileBlock is one of: text; thinking with signature; redacted_thinking; tool with id and input or raw_input.
type fileBlock struct {
	Text             *string   `yaml:"text,omitempty"`
	Thinking         *string   `yaml:"thinking,omitempty"`
	Signature        string    `yaml:"signature,omitempty"`
	RedactedThinking *string   `yaml:"redacted_thinking,omitempty"`
	Tool             *string   `yaml:"tool,omitempty"`
	ID               string    `yaml:"id,omitempty"`
	Input            jsonValue `yaml:"input,omitempty"`
	RawInput         string    `yaml:"raw_input,omitempty"`
}

// A jsonValue is any YAML value that has a JSON form, kept as JSON.
type jsonValue json.RawMessage

// UnmarshalYAML takes any value.
func (v *jsonValue) UnmarshalYAML(decode func(any) error) error {
	var value any
	if err := decode(&value); err != nil {
		return err
	}
	data, err := plainjson.Marshal(value)
	if err != nil {
		return fmt.Errorf("the value cannot be written as JSON: %w", err)
	}
	*v = jsonValue(data)
	return nil
}

// MarshalYAML relies on JSON being YAML.
func (v jsonValue) MarshalYAML() ([]byte, error) {
	if len(v) == 0 {
		return []byte("null"), nil
	}
	return bytes.Clone(v), nil
}

func (f file) script() (Script, problems) {
	var ps problems
	s := Script{
		Strict: f.Strict, StrictRoles: f.StrictRoles, CountTokens: f.CountTokens,
		IDPrefix: f.IDPrefix, KeepRequests: f.KeepRequests,
	}
	ps.add("version", f.Version == 0, "it is missing; write version: %d", fileVersion)
	ps.add("version", f.Version != 0 && f.Version != fileVersion, "version %d is not known; this program reads version %d", f.Version, fileVersion)
	for i, t := range f.Turns {
		s.Turns = append(s.Turns, t.turn(fmt.Sprintf("turns[%d]", i), &ps))
	}
	if f.Default != nil {
		s.Default = new(f.Default.turn("default", &ps))
	}
	return s, append(ps, s.problems()...)
}

func (ft fileTurn) turn(path string, ps *problems) Turn {
	t := Turn{
		Name: ft.Name, StopReason: ft.StopReason, StopSequence: ft.StopSequence, Model: ft.Model,
		Headers: ft.Headers, ChunkSize: ft.Chunk, Error: ft.Error,
		Delay:      parseDelay(path+".delay", ft.Delay, ps),
		DeltaDelay: parseDelay(path+".delta_delay", ft.DeltaDelay, ps),
		Repeat:     ft.repeat(path, ps),
		Content:    ft.content(path, ps),
	}
	if ft.When != nil {
		t.Match = *ft.When
		ps.add(path+".when", t.Match.isZero(), "the condition is empty; leave it out for a turn that is taken in order")
	}
	if ft.Usage != nil {
		t.Usage = *ft.Usage
	}
	if ft.Fault != nil {
		t.Fault = &Fault{Kind: ft.Fault.Kind, After: ft.Fault.After, Error: ft.Fault.Error}
	}
	return t
}

func (ft fileTurn) repeat(path string, ps *problems) int {
	if ft.Always {
		ps.add(path+".repeat", ft.Repeat != nil, "give either repeat or always")
		return Forever
	}
	if ft.Repeat == nil {
		return 0
	}
	ps.add(path+".repeat", *ft.Repeat < 1, "%d is not a number of uses; use 1 or more, or always: true", *ft.Repeat)
	return max(*ft.Repeat, 0)
}

// content checks that one way of giving the answer was chosen.
func (ft fileTurn) content(path string, ps *problems) []Block {
	given := count(ft.Text != nil, ft.Content != nil, ft.Structured != nil)
	ps.add(path, given > 1, "give one of text, content and structured")
	ps.add(path, given == 0 && ft.Error == nil && ft.Fault == nil && ft.StopReason == "",
		"the turn is empty; give text, content, structured, error or fault (content: [] with a stop_reason for an empty message)")
	switch {
	case ft.Text != nil:
		return []Block{TextBlock{Text: *ft.Text}}
	case ft.Structured != nil:
		return []Block{ToolCall{Name: StructuredOutputTool, Input: json.RawMessage(ft.Structured)}}
	}
	var blocks []Block
	for i, fb := range ft.Content {
		b, err := fb.block()
		if err != nil {
			ps.addErr(fmt.Sprintf("%s.content[%d]", path, i), err)
			continue
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func (fb fileBlock) block() (Block, error) {
	if count(fb.Text != nil, fb.Thinking != nil, fb.RedactedThinking != nil, fb.Tool != nil) != 1 {
		return nil, errors.New("a block has exactly one of text, thinking, redacted_thinking and tool")
	}
	if fb.Tool == nil && (fb.ID != "" || fb.Input != nil || fb.RawInput != "") {
		return nil, errors.New("only a tool block has id, input or raw_input")
	}
	if fb.Thinking == nil && fb.Signature != "" {
		return nil, errors.New("only a thinking block has a signature")
	}
	switch {
	case fb.Text != nil:
		return TextBlock{Text: *fb.Text}, nil
	case fb.Thinking != nil:
		return ThinkingBlock{Thinking: *fb.Thinking, Signature: fb.Signature}, nil
	case fb.RedactedThinking != nil:
		return RedactedThinkingBlock{Data: *fb.RedactedThinking}, nil
	}
	call := ToolCall{ID: fb.ID, Name: *fb.Tool, RawInput: fb.RawInput}
	if fb.Input != nil {
		call.Input = json.RawMessage(fb.Input)
	}
	return call, nil
}

func parseDelay(path, s string, ps *problems) time.Duration {
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	ps.add(path, err != nil, "%q is not a duration; write for example 50ms or 2s", s)
	return d
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
