// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"time"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A StreamEvent is one event of the API's stream, sent when partial messages are asked for. The
// event stays raw; the methods read the part they are named after each time they are called.
type StreamEvent struct {
	MessageHeader
	// Event is the API's event.
	Event json.RawMessage
	// ParentToolUseID is the tool call that runs the subagent of the message, or empty.
	ParentToolUseID string
	// APIMessageID is the id of the message that is being streamed; empty on older CLIs.
	APIMessageID string
	// TTFT is the time to the first token, nil except on the first event.
	TTFT             *time.Duration
	UserMessageUUID  string
	UserMessageUUIDs []string
	ResumeReason     string
}

func (m *StreamEvent) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "event":
		m.Event = d.raw()
	case "parent_tool_use_id":
		m.ParentToolUseID = d.str()
	case "api_message_id":
		m.APIMessageID = d.str()
	case "ttft_ms":
		m.TTFT = d.millisPtr()
	case "user_message_uuid":
		m.UserMessageUUID = d.str()
	case "user_message_uuids":
		m.UserMessageUUIDs = d.strs()
	case "resume_reason":
		m.ResumeReason = d.str()
	default:
		return false
	}
	return true
}

// EventType returns the type of the event: message_start, content_block_start,
// content_block_delta, content_block_stop, message_delta, message_stop, or another one.
func (m *StreamEvent) EventType() string {
	d := newMsgDecoder(m.Event, true)
	defer d.free()
	if !d.enterAt("type") {
		return ""
	}
	return d.eventType()
}

// Index returns the number of the content block that the event is about, or -1.
func (m *StreamEvent) Index() int {
	d := newMsgDecoder(m.Event, true)
	defer d.free()
	if !d.enterAt("index") || d.Kind() != plainjson.Number {
		return -1
	}
	return d.int()
}

// TextDelta returns the piece of text that the event adds, and whether it is such an event.
func (m *StreamEvent) TextDelta() (text string, ok bool) { return m.delta("text_delta", "text") }

// ThinkingDelta returns the piece of thinking that the event adds, and whether it is such an event.
func (m *StreamEvent) ThinkingDelta() (thinking string, ok bool) {
	return m.delta("thinking_delta", "thinking")
}

// InputJSONDelta returns the piece of a tool call's input that the event adds, and whether it is
// such an event. Only all pieces together are JSON.
func (m *StreamEvent) InputJSONDelta() (partial string, ok bool) {
	return m.delta("input_json_delta", "partial_json")
}

// SignatureDelta returns the signature of the thinking block, and whether it is such an event.
func (m *StreamEvent) SignatureDelta() (signature string, ok bool) {
	return m.delta("signature_delta", "signature")
}

// delta returns one field of the delta of the event, if the delta is of the given type.
func (m *StreamEvent) delta(typ, key string) (value string, ok bool) {
	d := newMsgDecoder(m.Event, true)
	defer d.free()
	if !d.enterAt("delta") || !d.Object() {
		return "", false
	}
	d.room = 0 // there is one string to keep
	matches, found := false, false
	for k, more := d.Field(); more; k, more = d.Field() {
		switch string(k) {
		case "type":
			if matches = d.is(typ); !matches {
				return "", false
			}
		case key:
			found = d.Kind() == plainjson.String
			value = d.str()
		default:
			d.Skip()
		}
	}
	if !matches || !found {
		return "", false
	}
	return value, true
}

// BlockStart returns the block that begins with the event, still empty, and whether one does.
func (m *StreamEvent) BlockStart() (Block, bool) {
	d := newMsgDecoder(m.Event, true)
	defer d.free()
	if !d.enterAt("content_block") {
		return nil, false
	}
	return d.block(), true
}

// StopReason returns why the message ended, and whether the event has the reason.
func (m *StreamEvent) StopReason() (reason string, ok bool) {
	d := newMsgDecoder(m.Event, true)
	defer d.free()
	if !d.enterAt("delta") || !d.enterAt("stop_reason") || d.Kind() != plainjson.String {
		return "", false
	}
	return d.str(), true
}

// Usage returns the tokens counted so far in the message, and whether the event has them.
func (m *StreamEvent) Usage() (Usage, bool) {
	d := newMsgDecoder(m.Event, true)
	defer d.free()
	if d.enterAt("usage") {
		u := d.usage()
		return u, u.Raw != nil
	}
	d.ResetTrusted(m.Event)
	if !d.enterAt("message") || !d.enterAt("usage") {
		return Usage{}, false
	}
	u := d.usage()
	return u, u.Raw != nil
}

// enterAt enters the next value and moves to the value of one of its keys.
func (d *msgDecoder) enterAt(key string) bool {
	if !d.Object() {
		return false
	}
	for k, ok := d.Field(); ok; k, ok = d.Field() {
		if string(k) == key {
			return true
		}
		d.Skip()
	}
	return false
}

func (d *msgDecoder) eventType() string {
	raw, plain, ok := d.Text()
	if ok && plain {
		for _, known := range eventTypes {
			if string(raw) == known {
				return known
			}
		}
	}
	if !plain {
		raw = plainjson.Unescape(nil, raw)
	}
	return string(raw)
}

// eventTypes are the events of the API, the most frequent first.
var eventTypes = [...]string{
	"content_block_delta", "content_block_start", "content_block_stop",
	"message_start", "message_delta", "message_stop", "ping", "error",
}
