// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// wire is the JSON form of an event. The schema is made of it too.
type wire[P any] struct {
	Type            Kind                       `json:"type"`
	Agent           string                     `json:"agent"`
	Timestamp       int64                      `json:"timestamp"`
	SessionID       string                     `json:"sessionId"`
	RunID           string                     `json:"runId,omitzero"`
	Seq             int64                      `json:"seq,omitzero"`
	Position        Position                   `json:"position,omitzero"`
	Turn            int                        `json:"turn,omitzero"`
	ParentToolUseID CallID                     `json:"parentToolUseId,omitzero"`
	AgentID         string                     `json:"agentId,omitzero"`
	Role            string                     `json:"role,omitzero"`
	Metadata        map[string]json.RawMessage `json:"metadata,omitempty"`
	Payload         P                          `json:"payload"`
}

// wireForm is what is written of a payload. Another type that embeds one of ours has more fields, and is written as it is.
func wireForm(p Payload) any {
	switch p.(type) {
	case Init, *Init, ToolCall, *ToolCall, ToolResult, *ToolResult, PermissionRequest, *PermissionRequest, Done, *Done:
		return p.(interface{ wireForm() any }).wireForm()
	}
	return p
}

// MarshalJSON gives the event in one line. Raw JSON inside it keeps its bytes, except for white space between them.
// [json.Marshal] does not: it writes the "<" of this line as "\u003c", which is the same text to every reader but not the
// same bytes. Call MarshalJSON itself, or use a [json.Encoder] with SetEscapeHTML(false), where the bytes count.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Payload == nil {
		return nil, errors.New("event: no Payload")
	}
	kind := e.Payload.EventKind()
	if kind == "" {
		return nil, fmt.Errorf("event: the payload %T has no kind, so the event could not be read", e.Payload)
	}
	line, err := marshalPlain(&wire[any]{
		Type: kind, Agent: e.Agent, Timestamp: e.Time.UnixMilli(), SessionID: e.SessionID,
		RunID: e.RunID, Seq: e.Seq, Position: e.Position, Turn: e.Turn, ParentToolUseID: e.ParentToolUseID, AgentID: e.AgentID, Role: e.Role,
		Metadata: e.Metadata, Payload: wireForm(e.Payload),
	})
	if err != nil {
		return nil, fmt.Errorf("event: writing %s: %w", kind, err)
	}
	return line, nil
}

// UnmarshalJSON reads an event of any kind.
func (e *Event) UnmarshalJSON(data []byte) error {
	var w wire[json.RawMessage]
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	if w.Type == "" || w.Payload == nil {
		return errors.New("event: an event needs type and payload")
	}
	payload, err := decodePayload(w.Type, w.Payload)
	if err != nil {
		return fmt.Errorf("event: payload of %s: %w", w.Type, err)
	}
	*e = Event{
		Kind: w.Type, Agent: w.Agent, Time: time.UnixMilli(w.Timestamp), SessionID: w.SessionID,
		RunID: w.RunID, Seq: w.Seq, Position: w.Position, Turn: w.Turn, ParentToolUseID: w.ParentToolUseID, AgentID: w.AgentID, Role: w.Role,
		Metadata: w.Metadata, Payload: payload,
	}
	return nil
}

var decoders = map[Kind]func(json.RawMessage) (Payload, error){
	KindInit:              decodeAs[Init],
	KindText:              decodeAs[Text],
	KindTextDelta:         decodeAs[TextDelta],
	KindThinking:          decodeAs[Thinking],
	KindToolUse:           decodeAs[ToolCall],
	KindToolResult:        decodeAs[ToolResult],
	KindPermissionRequest: decodeAs[PermissionRequest],
	KindError:             decodeAs[Error],
	KindDone:              decodeAs[Done],
	KindDecision:          decodeAs[Decision],
	KindToolStep:          decodeAs[ToolStep],
	KindToolProgress:      decodeAs[ToolProgress],
	KindToolLog:           decodeAs[ToolLog],
}

func decodePayload(kind Kind, data json.RawMessage) (Payload, error) {
	if decode, ok := decoders[kind]; ok {
		return decode(data)
	}
	return Extension{kind, data}, nil
}

func decodeAs[T Payload](data json.RawMessage) (Payload, error) {
	var p T
	if data[0] != '{' {
		return nil, errors.New("it must be an object")
	}
	err := json.Unmarshal(data, &p)
	return p, err
}

// objectOr is the JSON of an input, and {} for an empty one, because readers decode it without a check.
func objectOr(input json.RawMessage) json.RawMessage {
	if len(input) == 0 || string(input) == "null" {
		return json.RawMessage("{}")
	}
	return input
}

// A plainEncoder writes JSON without the escapes for HTML.
type plainEncoder struct {
	text bytes.Buffer
	json *json.Encoder
}

// plainEncoders are used again, since every event of every run is written.
var plainEncoders = sync.Pool{New: func() any {
	e := new(plainEncoder)
	e.json = json.NewEncoder(&e.text)
	e.json.SetEscapeHTML(false)
	return e
}}

// keptBuffer is how large a buffer may have grown and still be kept for the next event.
const keptBuffer = 64 << 10

// marshalPlain is json.Marshal without the escapes for HTML.
func marshalPlain(v any) ([]byte, error) {
	e := plainEncoders.Get().(*plainEncoder)
	err := e.json.Encode(v)
	text := bytes.Clone(bytes.TrimSuffix(e.text.Bytes(), []byte("\n")))
	if e.text.Cap() <= keptBuffer {
		e.text.Reset()
		plainEncoders.Put(e)
	}
	return text, err
}
