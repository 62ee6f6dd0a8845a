// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Kind names what an event tells. Names with a colon ("tool:progress") are extensions.
type Kind string

// The nine kinds that are common to all agents.
const (
	KindInit              Kind = "init"
	KindText              Kind = "text"
	KindTextDelta         Kind = "text_delta"
	KindThinking          Kind = "thinking"
	KindToolUse           Kind = "tool_use"
	KindToolResult        Kind = "tool_result"
	KindPermissionRequest Kind = "permission_request"
	KindError             Kind = "error"
	KindDone              Kind = "done"
)

// The kinds that parts of Drover add.
const (
	KindDecision     Kind = "gate:decision"
	KindToolStep     Kind = "tool:step"
	KindToolProgress Kind = "tool:progress"
	KindToolLog      Kind = "tool:log"
)

// An Event is one fact about a run.
type Event struct {
	// Kind is the kind of Payload. Marshalling takes it from there.
	Kind Kind
	// Agent is who did it: "claude-code".
	Agent string
	// Time is when, to the millisecond.
	Time time.Time
	// SessionID ties the event to a conversation of the agent. It is no token to resume with.
	SessionID string
	// RunID is the run, and Seq the place of the event in it, from 1. Zero means not numbered yet.
	RunID string
	Seq   int64
	// Turn is the model call of the main agent that the event belongs to, from 1. Zero means that it
	// came before the first one, or that the agent does not tell.
	Turn int
	// ParentToolUseID is the tool call inside which it happened, in a subagent, and AgentID that
	// subagent. Both are empty for the main agent; AgentID also where the agent does not tell.
	ParentToolUseID string
	AgentID         string
	// Role is the part that the agent plays among several; most runs have none.
	Role string
	// Metadata holds what an agent adds.
	Metadata map[string]json.RawMessage
	// Payload is the fact itself.
	Payload Payload
}

// A Payload is what an event tells: an [Init], a [Text], a [TextDelta], a [Thinking], a [ToolCall], a
// [ToolResult], a [PermissionRequest], an [Error], a [Done]; a [Decision], a [ToolStep], a
// [ToolProgress], a [ToolLog]; or an [Extension] for everything else. Adapters may add payloads of
// their own: whoever reads their events from JSON gets an Extension.
type Payload interface {
	// EventKind is the kind of the events that carry the payload.
	EventKind() Kind
}

// An Extension keeps a payload of a kind that this package does not know.
type Extension struct {
	Kind Kind
	Data json.RawMessage
}

// EventKind implements [Payload].
func (e Extension) EventKind() Kind { return e.Kind }

// MarshalJSON gives the data as it came, and null where there is none.
func (e Extension) MarshalJSON() ([]byte, error) {
	if len(e.Data) == 0 {
		return []byte("null"), nil
	}
	return e.Data, nil
}

// New makes an event of a payload, now.
func New(payload Payload) Event {
	return Event{Kind: payload.EventKind(), Time: time.Now(), Payload: payload}
}

// CallID is the tool use id that the event is about, or empty. It joins a tool_use with its result and
// with all that is said about the call in between.
func (e Event) CallID() string {
	switch p := e.Payload.(type) {
	case ToolCall:
		return p.ID
	case ToolResult:
		return p.ID
	case PermissionRequest:
		return p.ID
	case Decision:
		return p.CallID
	case ToolStep:
		return p.ID
	case ToolProgress:
		return p.ID
	case ToolLog:
		return p.ID
	}
	return ""
}

// wire is the JSON form of an event.
type wire struct {
	Type            Kind                       `json:"type"`
	Agent           string                     `json:"agent"`
	Timestamp       int64                      `json:"timestamp"`
	SessionID       string                     `json:"sessionId"`
	RunID           string                     `json:"runId,omitzero"`
	Seq             int64                      `json:"seq,omitzero"`
	Turn            int                        `json:"turn,omitzero"`
	ParentToolUseID string                     `json:"parentToolUseId,omitzero"`
	AgentID         string                     `json:"agentId,omitzero"`
	Role            string                     `json:"role,omitzero"`
	Metadata        map[string]json.RawMessage `json:"metadata,omitempty"`
	Payload         json.RawMessage            `json:"payload"`
}

// MarshalJSON gives the event in one line. Raw JSON inside it keeps its bytes, except for white
// space between them. [json.Marshal] does not: it writes the "<" of this line as "\u003c", which is
// the same text to every reader but not the same bytes. Call MarshalJSON itself, or use a
// [json.Encoder] with SetEscapeHTML(false), where the bytes count.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Payload == nil {
		return nil, errors.New("event: no Payload")
	}
	kind := e.Payload.EventKind()
	if kind == "" {
		return nil, fmt.Errorf("event: the payload %T has no kind; nobody could read the event", e.Payload)
	}
	payload, err := marshalPlain(e.Payload)
	if err != nil {
		return nil, fmt.Errorf("event: payload of %s: %w", kind, err)
	}
	return marshalPlain(wire{
		Type: kind, Agent: e.Agent, Timestamp: e.Time.UnixMilli(), SessionID: e.SessionID,
		RunID: e.RunID, Seq: e.Seq, Turn: e.Turn, ParentToolUseID: e.ParentToolUseID, AgentID: e.AgentID, Role: e.Role, Metadata: e.Metadata, Payload: payload,
	})
}

// UnmarshalJSON reads an event of any kind.
func (e *Event) UnmarshalJSON(data []byte) error {
	var w wire
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
		RunID: w.RunID, Seq: w.Seq, Turn: w.Turn, ParentToolUseID: w.ParentToolUseID, AgentID: w.AgentID, Role: w.Role, Metadata: w.Metadata, Payload: payload,
	}
	return nil
}

// decoders has the kinds that this package knows.
var decoders = map[Kind]func(json.RawMessage) (Payload, error){
	KindInit:              decodeAs[Init],
	KindText:              decodeAs[Text],
	KindTextDelta:         decodeAs[TextDelta],
	KindThinking:          decodeAs[Thinking],
	KindError:             decodeAs[Error],
	KindDone:              decodeAs[Done],
	KindToolUse:           decodeAs[ToolCall],
	KindToolResult:        decodeAs[ToolResult],
	KindPermissionRequest: decodeAs[PermissionRequest],
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

// marshalPlain is json.Marshal without the escapes for HTML.
func marshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
