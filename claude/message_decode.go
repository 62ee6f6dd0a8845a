// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/drover-agents/drover/internal/plainjson"
)

const (
	// sharedString is the longest string that shares memory with the others of its message.
	// Longer ones are allocations of their own, so that keeping an id does not keep a file.
	sharedString = 1024
	// maxScratch bounds the memory that an idle decoder holds on to.
	maxScratch = 1 << 20
)

// A msgDecoder reads the fields of one message. Each method consumes one value; one of an unexpected type counts as absent.
type msgDecoder struct {
	plainjson.Scanner
	// shared collects the short strings of a message, so that they cost one allocation. A
	// Builder never moves or changes what String has returned.
	shared  strings.Builder
	room    int // size of a new shared block
	level   int // of blocks inside blocks
	scratch []byte
}

// A fielder is a struct that knows its fields; other structs have a plan. Method field consumes the
// value of key and reports true, or reports false without consuming it.
type fielder interface {
	field(d *msgDecoder, key []byte) bool
}

var msgDecoders = sync.Pool{New: func() any { return new(msgDecoder) }}

// newMsgDecoder returns a decoder of data. Trusted data was checked to be JSON.
func newMsgDecoder(data []byte, trusted bool) *msgDecoder {
	d := msgDecoders.Get().(*msgDecoder)
	if trusted {
		d.ResetTrusted(data)
	} else {
		d.Reset(data)
	}
	d.room = max(128, min(len(data)/2, sharedString))
	return d
}

func (d *msgDecoder) free() {
	d.Reset(nil)
	d.shared.Reset()
	d.level = 0
	if cap(d.scratch) > maxScratch {
		d.scratch = nil
	}
	msgDecoders.Put(d)
}

// message reads a whole line into m. It reports whether the line has the type and subtype of m.
func (d *msgDecoder) message(m Message) (same bool) {
	h := m.header()
	if !d.Object() {
		return true
	}
	same = true
	own, _ := m.(fielder)
	var plan planned
	if own == nil {
		plan = plannedOf(m)
	}
	for key, ok := d.Field(); ok; key, ok = d.Field() {
		switch string(key) {
		case "type":
			same = d.is(h.typ) && same
		case "subtype":
			same = d.is(h.subtype) && same
		case "uuid":
			h.UUID = d.str()
		case "session_id":
			h.SessionID = d.str()
		default:
			if own != nil && !own.field(d, key) || own == nil && !plan.field(d, key) {
				d.Skip()
			}
		}
	}
	return same
}

// object reads the next value into f if it is an object, and reports whether it is.
func (d *msgDecoder) object(f fielder) bool {
	if !d.Object() {
		return false
	}
	for key, ok := d.Field(); ok; key, ok = d.Field() {
		if !f.field(d, key) {
			d.Skip()
		}
	}
	return true
}

// is reports whether the next value is the string want, or no string while want is empty.
func (d *msgDecoder) is(want string) bool {
	text, scratch, _ := d.Decode(d.scratch)
	d.scratch = scratch
	return string(text) == want
}

func (d *msgDecoder) str() string {
	if d.Large() {
		return d.largeStr()
	}
	text, scratch, _ := d.Decode(d.scratch)
	d.scratch = scratch
	return d.keep(text)
}

// largeStr decodes a string straight into memory of its own: a copy more would be megabytes.
func (d *msgDecoder) largeStr() string {
	raw, plain, _ := d.Text()
	if plain || len(raw) == 0 {
		return d.keep(raw)
	}
	own := plainjson.Unescape(nil, raw)
	return unsafe.String(unsafe.SliceData(own), len(own)) // own is not used again
}

func (d *msgDecoder) keep(b []byte) string {
	if len(b) > sharedString {
		return string(b)
	}
	if d.shared.Cap()-d.shared.Len() < len(b) {
		d.shared.Reset()
		d.shared.Grow(max(d.room, len(b)))
	}
	start := d.shared.Len()
	d.shared.Write(b)
	return d.shared.String()[start:]
}

func (d *msgDecoder) strs() []string {
	if !d.Array() {
		return nil
	}
	out := []string{}
	for d.Elem() {
		if d.Kind() != plainjson.String {
			d.Skip()
			continue
		}
		out = append(out, d.str())
	}
	return out
}

func (d *msgDecoder) int() int {
	v, _ := d.Int()
	return int(v)
}

func (d *msgDecoder) intPtr() *int {
	v, ok := d.Int()
	return present(int(v), ok)
}

func (d *msgDecoder) float() float64 {
	v, _ := d.Float()
	return v
}

func (d *msgDecoder) bool() bool {
	v, _ := d.Bool()
	return v
}

// present returns a pointer to v, nil if it is not ok.
func present[T any](v T, ok bool) *T {
	if !ok {
		return nil
	}
	return &v
}

// raw returns the bytes of the next value, nil for null.
func (d *msgDecoder) raw() json.RawMessage {
	if d.Kind() == plainjson.Null {
		d.Skip()
		return nil
	}
	return d.Raw()
}

func (d *msgDecoder) raws() []json.RawMessage {
	if !d.Array() {
		return nil
	}
	out := []json.RawMessage{}
	for d.Elem() {
		out = append(out, d.Raw())
	}
	return out
}

func (d *msgDecoder) millisPtr() *time.Duration {
	v, ok := d.Float()
	return present(floatDuration(v, time.Millisecond), ok)
}

// floatDuration returns v units, or zero if that is not a Duration.
func floatDuration(v float64, unit time.Duration) time.Duration {
	const limit = 1 << 62
	if n := v * float64(unit); -limit < n && n < limit {
		return time.Duration(n)
	}
	return 0
}

// time reads a point in time: RFC 3339, or a number of seconds or milliseconds since 1970.
func (d *msgDecoder) time() time.Time {
	if d.Kind() == plainjson.Number {
		v, ok := d.Int()
		switch {
		case !ok || v <= 0:
			return time.Time{}
		case v > 1e11: // seconds would be in the year 5138
			return time.UnixMilli(v).UTC()
		}
		return time.Unix(v, 0).UTC()
	}
	raw, plain, ok := d.Text()
	if !ok || !plain {
		return time.Time{}
	}
	var t time.Time
	if t.UnmarshalText(raw) != nil {
		return time.Time{}
	}
	return t
}
