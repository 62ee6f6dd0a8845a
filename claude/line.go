// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"

	"github.com/drover-agents/drover/internal/plainjson"
)

var errNotObject = errors.New("not a JSON object")

// A Line is a line of the CLI whose type is known, but which is not decoded. It costs far less than a
// [Message], for consumers that pass most lines on. A Line of [ParseLine] is valid JSON; one of
// [Client.Lines] is not fully checked, and Decode may fail.
type Line struct {
	head    lineHead
	raw     []byte
	checked bool // all of raw is known to be JSON
}

// ParseLine checks that raw is a JSON object and finds its type. The Line keeps raw, which must not be modified afterwards.
func ParseLine(raw []byte) (Line, error) {
	head, err := peekLine(raw)
	return Line{head: head, raw: raw, checked: err == nil}, err
}

// Type returns the top-level "type".
func (l Line) Type() string { return l.head.typ }

// Subtype returns the top-level "subtype", empty for types that have none.
func (l Line) Subtype() string { return l.head.subtype }

// Raw returns the line as the CLI wrote it. It must not be modified.
func (l Line) Raw() json.RawMessage { return l.raw }

// Decode returns the typed message. It fails only if the line is not JSON.
func (l Line) Decode() (Message, error) {
	m, _, err := decodeAs(l.raw, l.head, l.checked)
	return m, err
}

// Bits of a tag. The kind of message is above tagKind.
const (
	tagParent  uint64 = 1 << 0
	tagChecked uint64 = 1 << 1
	tagKind           = 2
)

// tag returns what [taggedLine] needs to make the line again from its bytes. Kind 0 means that the head must be read again.
func (l Line) tag() (tag uint64) {
	if k := messageKinds[l.head.kind]; l.head.kind != kindUnknown && !k.control && k.subtype == l.head.subtype {
		tag = uint64(l.head.kind) << tagKind
	}
	if l.head.hasParent {
		tag |= tagParent
	}
	if l.checked {
		tag |= tagChecked
	}
	return tag
}

// taggedLine makes the Line again whose bytes and tag were kept.
func taggedLine(raw []byte, tag uint64) Line {
	line := Line{raw: raw, checked: tag&tagChecked != 0}
	kind := tag >> tagKind
	if kind == 0 || kind >= uint64(len(messageKinds)) {
		line.head, _ = glanceLine(raw) // it succeeded when the line was kept
		return line
	}
	k := messageKinds[kind]
	line.head = lineHead{kind: messageKind(kind), typ: k.typ, subtype: k.subtype, hasParent: tag&tagParent != 0}
	return line
}

// lineHead is what the client itself needs of a line.
type lineHead struct {
	kind    messageKind
	typ     string // shared constants for known types
	subtype string
	// hasParent is true if parent_tool_use_id is present and not null.
	hasParent bool

	// The rest is for control frames only.

	// requestID is request_id, which a control_response has inside response.
	requestID string
	// bodySubtype is request.subtype or response.subtype.
	bodySubtype string
	// body is the raw "request" of a control_request or "response" of a control_response.
	body []byte
}

// headScan collects the parts of a head as slices of the line; the type, which may come last, decides which are used.
type headScan struct {
	typ, subtype, requestID lineText
	hasParent               bool
	request, response       bodyScan
}

type bodyScan struct {
	raw                []byte
	subtype, requestID lineText
}

// lineText is a string as it is written in a line.
type lineText struct {
	raw   []byte
	plain bool
}

func (t lineText) bytes() []byte {
	if t.plain || len(t.raw) == 0 {
		return t.raw
	}
	return plainjson.Unescape(nil, t.raw)
}

func scanText(s *plainjson.Scanner) lineText {
	raw, plain, _ := s.Text()
	return lineText{raw, plain}
}

// peekLine finds the head of a line in one pass and checks that the whole line is a JSON object.
// The order of keys does not matter; the last of several equal keys counts.
func peekLine(raw []byte) (lineHead, error) {
	var s plainjson.Scanner
	s.Reset(raw)
	return scanHead(&s)
}

// glanceLine is peekLine that steps over the values it does not need without checking them, several
// times as fast. The decoder of the line checks them.
func glanceLine(raw []byte) (lineHead, error) {
	var s plainjson.Scanner
	s.ResetTrusted(raw)
	return scanHead(&s)
}

func scanHead(s *plainjson.Scanner) (lineHead, error) {
	if s.Kind() != plainjson.Object {
		return lineHead{}, notObject(s)
	}
	var h headScan
	s.Object()
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		switch string(key) {
		case "type":
			h.typ = scanText(s)
		case "subtype":
			h.subtype = scanText(s)
		case "request_id":
			h.requestID = scanText(s)
		case "parent_tool_use_id":
			h.hasParent = s.Kind() != plainjson.Null
			s.Skip()
		case "request":
			h.request = scanBody(s)
		case "response":
			h.response = scanBody(s)
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return lineHead{}, err
	}
	return h.head(), nil
}

func notObject(s *plainjson.Scanner) error {
	s.Skip()
	if err := s.End(); err != nil {
		return err
	}
	return errNotObject
}

func scanBody(s *plainjson.Scanner) (b bodyScan) {
	start := s.Pos()
	if s.Object() {
		for key, ok := s.Field(); ok; key, ok = s.Field() {
			switch string(key) {
			case "subtype":
				b.subtype = scanText(s)
			case "request_id":
				b.requestID = scanText(s)
			default:
				s.Skip()
			}
		}
	}
	b.raw = s.Since(start)
	return b
}

func (h *headScan) head() lineHead {
	head := headOf(h.typ.bytes(), h.subtype.bytes())
	head.hasParent = h.hasParent
	switch head.kind {
	case kindControlRequest:
		head.requestID = string(h.requestID.bytes())
		head.body = h.request.raw
		head.bodySubtype = internSubtype(h.request.subtype.bytes())
	case kindControlResponse:
		head.requestID = string(h.response.requestID.bytes())
		head.body = h.response.raw
		head.bodySubtype = internSubtype(h.response.subtype.bytes())
	case kindControlCancel:
		head.requestID = string(h.requestID.bytes())
	}
	return head
}

// peekType finds the type of a line, mostly near its beginning, without reading past it. It does not check the rest.
func peekType(raw []byte) (head lineHead, ok bool) {
	var s plainjson.Scanner
	s.Reset(raw)
	if s.Kind() != plainjson.Object {
		return lineHead{}, false
	}
	var typ, subtype lineText
	s.Object()
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		switch string(key) {
		case "type":
			typ = scanText(&s)
		case "subtype":
			subtype = scanText(&s)
		default:
			s.Skip()
		}
		if typ.raw != nil && (subtype.raw != nil || !hasSubtype(typ.bytes())) {
			return headOf(typ.bytes(), subtype.bytes()), true
		}
	}
	return lineHead{}, false
}
