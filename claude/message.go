// SPDX-License-Identifier: Apache-2.0

package claude

import "encoding/json"

// A Message is one line that the CLI wrote. It is one of the pointer types of this package that embed [MessageHeader]; a
// line of a type or subtype that this version does not know is an [UnknownMessage].
//
// Decoding is tolerant: a field that is absent, null or of an unexpected JSON type leaves the zero
// value, and everything the CLI wrote is still in Raw. Where absent differs from zero the field is
// a pointer; a list that was present but empty is not nil.
type Message interface {
	// Raw returns the line as the CLI wrote it, without its line end. It must not be modified.
	Raw() json.RawMessage
	// Type returns the top-level "type".
	Type() string
	// Subtype returns the top-level "subtype", empty for types that have none.
	Subtype() string

	header() *MessageHeader
}

// MessageHeader is what every [Message] carries.
type MessageHeader struct {
	// UUID identifies the message; empty on a few types.
	UUID string
	// SessionID names the session the message belongs to.
	SessionID string

	raw     json.RawMessage
	typ     string
	subtype string
}

// Raw returns the line as the CLI wrote it, without its line end. It must not be modified.
func (h *MessageHeader) Raw() json.RawMessage { return h.raw }

// Type returns the top-level "type".
func (h *MessageHeader) Type() string { return h.typ }

// Subtype returns the top-level "subtype", empty for types that have none.
func (h *MessageHeader) Subtype() string { return h.subtype }

func (h *MessageHeader) header() *MessageHeader { return h }

// An UnknownMessage is a line of a type or subtype that this version does not know. Raw has its whole content.
type UnknownMessage struct{ MessageHeader }

// DecodeMessage decodes one line of the CLI's output. It fails only if the line is not a JSON
// object. The message keeps line, which must not be modified afterwards.
func DecodeMessage(line []byte) (Message, error) {
	head, ok := peekType(line)
	if ok {
		if m, same, err := decodeAs(line, head, false); same {
			return m, err
		}
	}
	// The type could not be found at first sight, or is written twice: look at the whole line.
	head, err := peekLine(line)
	if err != nil {
		return nil, err
	}
	m, _, err := decodeAs(line, head, true)
	return m, err
}

// decodeAs decodes a line whose type is known from head; trusted lines were checked to be JSON. Same is false if the line, read to its
// end, turns out to have another type or subtype.
func decodeAs(line []byte, head lineHead, trusted bool) (m Message, same bool, err error) {
	m = messageKinds[head.kind].make()
	h := m.header()
	h.raw = line
	h.typ, h.subtype = head.typ, head.subtype
	d := newMsgDecoder(line, trusted)
	defer d.free()
	same = d.message(m)
	if err := d.End(); err != nil {
		return nil, same, err
	}
	return m, same, nil
}
