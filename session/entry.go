// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/drover-agents/drover/event"
)

// An Entry is one event in the log of a session. It must not be changed.
type Entry struct {
	// Pos numbers the entries of a session, from 1 and without gaps.
	Pos int64
	// Cause is the tool call that the event was dispatched by, or empty.
	Cause string
	// Tx is the transaction that the event belongs to, or zero; see [Tx].
	Tx int64
	// Event is what happened. The payload of a type that is no [event.Payload] is a [Value].
	Event event.Event
}

// A Value is the payload of an event that was dispatched as a plain Go value.
type Value struct {
	kind event.Kind
	v    any
}

// EventKind implements [event.Payload].
func (v Value) EventKind() event.Kind { return v.kind }

// Get returns the value.
func (v Value) Get() any { return v.v }

// MarshalJSON gives the value's own JSON.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.v) }

// valueOf is what reducers and subscribers get of a payload.
func valueOf(p event.Payload) any {
	if v, ok := p.(Value); ok {
		return v.v
	}
	return p
}

// payloadOf makes a payload of anything. Pointers count as what they point to, so that nobody can
// change an event that is in the log, and so that it has one type.
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
	if p, ok := v.(event.Payload); ok {
		return p, nil
	}
	return Value{kindOf(value.Type()), v}, nil
}

var kinds sync.Map // reflect.Type to event.Kind

// kindOf is the name of a type in the log. A type that is an [event.Payload] names itself; others are
// called after their Go name, which changes when they are moved or renamed.
func kindOf(t reflect.Type) event.Kind {
	if kind, ok := kinds.Load(t); ok {
		return kind.(event.Kind)
	}
	kind := nameOf(t)
	kinds.Store(t, kind)
	return kind
}

func nameOf(t reflect.Type) event.Kind {
	if p, ok := reflect.Zero(t).Interface().(event.Payload); ok && t.Kind() != reflect.Interface {
		if kind := p.EventKind(); kind != "" {
			return kind
		}
	}
	if t.Name() == "" || t.PkgPath() == "" {
		return event.Kind("go:" + t.String())
	}
	// Name has the type arguments of a generic type in full.
	return event.Kind("go:" + strings.TrimPrefix(t.PkgPath(), "_/") + "." + t.Name())
}
