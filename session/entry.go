// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

// An Entry is one event in the log of a session. It must not be changed.
type Entry struct {
	// Pos numbers the entries of a session, from 1 and without gaps.
	Pos int64
	// Cause is the tool call that the event was dispatched by, or empty.
	Cause string
	// Tx is the transaction that the event belongs to, or zero; see [Tx].
	Tx int64
	// Event is the event. If its type is not an [event.Payload], the payload is a [Value]. If it comes from a store
	// and this session does not know its type, the payload is an [event.Extension].
	Event event.Event
}

var entryType = reflect.TypeFor[Entry]()

// A Value is the payload of an event that was dispatched as a plain Go value.
type Value struct {
	kind event.Kind
	v    any
}

// EventKind implements [event.Payload].
func (v Value) EventKind() event.Kind { return v.kind }

// Get returns the value.
func (v Value) Get() any { return v.v }

// MarshalJSON gives the JSON of a pointer to the value, so that pointer methods write what pointer methods will read.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.v == nil {
		return plainjson.Marshal(nil)
	}
	p := reflect.New(reflect.TypeOf(v.v))
	p.Elem().Set(reflect.ValueOf(v.v))
	return plainjson.Marshal(p.Interface())
}

// valueOf is what reducers and subscribers get of a payload.
func valueOf(p event.Payload) any {
	if v, ok := p.(Value); ok {
		return v.v
	}
	return p
}

// payloadOf makes a payload of any value. Pointers count as what they point to: an event is immutable and has one type.
func payloadOf(v any) (event.Payload, error) {
	value := reflect.ValueOf(v)
	for value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return nil, fmt.Errorf("session: a nil %T cannot be dispatched", v)
		}
		value = value.Elem()
	}
	if !value.IsValid() {
		return nil, fmt.Errorf("session: nil cannot be dispatched")
	}
	if value.Type() != reflect.TypeOf(v) {
		v = value.Interface()
	}
	switch p := v.(type) {
	case Entry:
		return nil, advice.Wrap(errors.New("session: an Entry belongs to its own log"), "dispatch its Event")
	case event.Payload:
		return p, nil
	}
	return Value{kindOf(value.Type()), v}, nil
}
