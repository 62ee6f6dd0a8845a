// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/drover-agents/drover/internal/plainjson"
)

// Input is a convenient literal for the input of a tool call.
type Input = map[string]any

// A Block is one content block of an answer: a [TextBlock], [ThinkingBlock], [RedactedThinkingBlock] or [ToolCall].
type Block interface {
	// wire returns the finished block as the API sends it in a whole message.
	wire() any
	// opening returns the block as it looks in content_block_start.
	opening() any
	// deltas returns what fills the block, in deltas of size characters.
	deltas(size int) []any
	check() error
}

// A TextBlock is text for the user.
type TextBlock struct {
	Text string
}

// A ThinkingBlock is the model's reasoning. Signature is sent after it; empty means a fixed one,
// because the CLI returns unsigned thinking to the API differently.
type ThinkingBlock struct {
	Thinking  string
	Signature string
}

// A RedactedThinkingBlock is reasoning that the API gives only in encrypted form.
type RedactedThinkingBlock struct {
	Data string
}

// A ToolCall asks the client to run a tool.
type ToolCall struct {
	// ID identifies the call. Empty means one that is counted, unique within the [Model].
	ID string
	// Name is the tool, as offered in the request.
	Name string
	// Input is anything that encodes to a JSON object; a [json.RawMessage] is sent as it is. Nil means {}.
	Input any
	// RawInput is streamed instead of Input, as it is; it need not be JSON. An answer that is not
	// streamed cannot carry broken JSON and holds it as a string.
	RawInput string
}

type wireText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (b TextBlock) wire() any    { return wireText{"text", b.Text} }
func (b TextBlock) opening() any { return wireText{"text", ""} }
func (b TextBlock) check() error { return nil }

func (b TextBlock) deltas(size int) []any {
	return mapChunks(b.Text, size, func(s string) any { return wireText{"text_delta", s} })
}

type wireThinking struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type wireThinkingDelta struct {
	Type     string `json:"type"`
	Thinking string `json:"thinking"`
}

type wireSignatureDelta struct {
	Type      string `json:"type"`
	Signature string `json:"signature"`
}

func (b ThinkingBlock) signature() string {
	if b.Signature == "" {
		return "c2NyaXB0ZWQ="
	}
	return b.Signature
}

func (b ThinkingBlock) wire() any    { return wireThinking{"thinking", b.Thinking, b.signature()} }
func (b ThinkingBlock) opening() any { return wireThinking{Type: "thinking"} }
func (b ThinkingBlock) check() error { return nil }

func (b ThinkingBlock) deltas(size int) []any {
	ds := mapChunks(b.Thinking, size, func(s string) any { return wireThinkingDelta{"thinking_delta", s} })
	return append(ds, wireSignatureDelta{"signature_delta", b.signature()})
}

type wireRedacted struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

func (b RedactedThinkingBlock) wire() any        { return wireRedacted{"redacted_thinking", b.Data} }
func (b RedactedThinkingBlock) opening() any     { return b.wire() }
func (b RedactedThinkingBlock) deltas(int) []any { return nil }
func (b RedactedThinkingBlock) check() error     { return nil }

type wireToolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type wireInputDelta struct {
	Type        string `json:"type"`
	PartialJSON string `json:"partial_json"`
}

func (b ToolCall) wire() any {
	return wireToolUse{"tool_use", b.ID, b.Name, b.wholeInput()}
}

func (b ToolCall) opening() any {
	return wireToolUse{"tool_use", b.ID, b.Name, json.RawMessage("{}")}
}

func (b ToolCall) deltas(size int) []any {
	text := b.RawInput
	if text == "" {
		text = string(b.wholeInput())
	}
	return mapChunks(text, size, func(s string) any { return wireInputDelta{"input_json_delta", s} })
}

func (b ToolCall) wholeInput() json.RawMessage {
	if b.RawInput != "" {
		if json.Valid([]byte(b.RawInput)) {
			return json.RawMessage(b.RawInput)
		}
		return mustJSON(b.RawInput)
	}
	input, err := encodeInput(b.Input)
	if err != nil { // check has refused it; only a turn made by a Func gets here
		return json.RawMessage("{}")
	}
	return input
}

func (b ToolCall) check() error {
	if b.Name == "" {
		return fmt.Errorf("a tool call needs the name of the tool")
	}
	if b.ID != "" && !isIdentifier(b.ID) {
		return fmt.Errorf("tool call id %q: only letters, digits, _ and - are allowed by the API", b.ID)
	}
	if b.RawInput != "" && b.Input != nil {
		return fmt.Errorf("tool call %s has both an input and a raw input; give one", b.Name)
	}
	if b.RawInput != "" {
		return nil
	}
	input, err := encodeInput(b.Input)
	if err != nil {
		return fmt.Errorf("input of tool call %s cannot be encoded: %w", b.Name, err)
	}
	if !bytes.HasPrefix(input, []byte("{")) {
		return fmt.Errorf("input of tool call %s is not an object: %.60s", b.Name, input)
	}
	return nil
}

func encodeInput(input any) (json.RawMessage, error) {
	if input == nil {
		return json.RawMessage("{}"), nil
	}
	return plainjson.Marshal(input)
}

// mustJSON encodes the package's own wire types, which cannot fail.
func mustJSON(v any) json.RawMessage {
	data, err := plainjson.Marshal(v)
	if err != nil {
		panic("script: encoding a wire type: " + err.Error())
	}
	return data
}

func mapChunks(s string, size int, f func(string) any) []any {
	var out []any
	for _, c := range chunks(s, size) {
		out = append(out, f(c))
	}
	return out
}

// chunks cuts s into pieces of size characters, never inside one.
func chunks(s string, size int) []string {
	if s == "" {
		return nil
	}
	if size <= 0 {
		return []string{s}
	}
	var out []string
	start, n := 0, 0
	for i := range s {
		if n == size {
			out = append(out, s[start:i])
			start, n = i, 0
		}
		n++
	}
	return append(out, s[start:])
}

func isIdentifier(s string) bool {
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return s != ""
}
