// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"time"
)

// A Kind names the type of an event. Names with a colon ("tool:progress") are extensions.
type Kind string

// The nine kinds that are common to all agents. Each has a payload of its name; that of KindToolUse is [ToolCall].
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
	// RunID is the run, and Seq the number of the event in it, from 1. Zero means not numbered yet.
	RunID string
	Seq   int64
	// Position is where the event is in the log of a session. Zero means that it is in none.
	Position Position
	// Turn is the model call of the main agent that the event belongs to, from 1. Zero means that it
	// came before the first one, or that the agent does not report.
	Turn int
	// ParentToolUseID is the tool call inside which it happened, in a subagent, and AgentID that
	// subagent. Both are empty for the main agent; AgentID also where the agent does not report it.
	ParentToolUseID CallID
	AgentID         string
	// Role is the part that the agent plays among several; most runs have none.
	Role string
	// Metadata holds what an agent adds.
	Metadata map[string]json.RawMessage
	// Payload is the fact itself.
	Payload Payload
}

// A Payload is the content of an event: an [Init], a [Text], a [TextDelta], a [Thinking], a [ToolCall], a [ToolResult], a
// [PermissionRequest], an [Error], a [Done]; a [Decision], a [ToolStep], a [ToolProgress], a [ToolLog]; or an [Extension]
// for everything else. Adapters may add payloads of their own: a reader of their events in JSON gets an Extension.
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

// MarshalJSON returns the data as received, and null without data.
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

// CallID is the tool use id that the event is about, or empty. It joins all events of a call, from tool_use to its result.
func (e Event) CallID() CallID {
	if p, ok := e.Payload.(interface{ callID() CallID }); ok {
		return p.callID()
	}
	return ""
}

// These are methods, not cases of a switch, so that pointers have them too.
func (c ToolCall) callID() CallID          { return c.ID }
func (r ToolResult) callID() CallID        { return r.ID }
func (r PermissionRequest) callID() CallID { return r.ID }
func (d Decision) callID() CallID          { return d.CallID }
func (s ToolStep) callID() CallID          { return s.ID }
func (p ToolProgress) callID() CallID      { return p.ID }
func (l ToolLog) callID() CallID           { return l.ID }
