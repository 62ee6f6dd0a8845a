// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
)

var kinds sync.Map // reflect.Type to event.Kind

// kindOf is the name of a type in the log. A type that is an [event.Payload] names itself; others are
// called after their Go name, which changes when they are moved or renamed.
func kindOf(t reflect.Type) event.Kind {
	if kind, ok := kinds.Load(t); ok {
		return kind.(event.Kind)
	}
	kind := ownKind(t)
	if kind == "" {
		kind = goKind(t)
	}
	kinds.Store(t, kind)
	return kind
}

// ownKind is what a type calls itself, or empty. The method may be the pointer's: what is dispatched
// through a pointer counts as what it points to.
func ownKind(t reflect.Type) (kind event.Kind) {
	defer func() {
		if recover() != nil {
			kind = "" // it has a kind only together with what is in it
		}
	}()
	if p, ok := reflect.New(t).Interface().(event.Payload); ok {
		return p.EventKind()
	}
	return ""
}

func goKind(t reflect.Type) event.Kind {
	if t.Name() == "" || t.PkgPath() == "" {
		return event.Kind("go:" + t.String())
	}
	// Name has the type arguments of a generic type in full.
	return event.Kind("go:" + strings.TrimPrefix(t.PkgPath(), "_/") + "." + t.Name())
}

// claimLocked gives a kind to the Go type that is called so. A log in which two types had one name, as types inside
// functions or with a taken EventKind can have, could not be read again. order and mu are held.
func (s *Session) claimLocked(t reflect.Type) error {
	kind := kindOf(t)
	owner := s.types[kind]
	if owner == nil {
		owner = ownerOf(kind)
	}
	if owner != nil && owner != t {
		return advice.Wrap(fmt.Errorf("session: two types are called %q in the log: %s and %s", kind, describe(owner), describe(t)),
			"give one of them a method EventKind with a name of its own")
	}
	s.types[kind] = t
	if s.unknown[kind] {
		delete(s.unknown, kind)
		s.forgetRawLocked()
	}
	return nil
}

// forgetRawLocked marks the slices whose reducers see events of any type as to be folded again. These reducers
// have seen raw events that they would now see with their Go type.
func (s *Session) forgetRawLocked() {
	for _, sl := range s.slices {
		if sl.typ == extensionType || sl.reducers[extensionType] != nil || sl.reducers[entryType] != nil {
			sl.epoch++
		}
	}
}

func describe(t reflect.Type) string { return fmt.Sprintf("%s (%s)", t, t.PkgPath()) }

// ownerOf is the type that every reader of a log makes of a kind, or nil.
func ownerOf(kind event.Kind) reflect.Type {
	if t := ownTypes[kind]; t != nil {
		return t
	}
	name, err := json.Marshal(kind)
	if err != nil {
		return nil
	}
	var e event.Event
	if e.UnmarshalJSON(fmt.Appendf(nil, `{"type":%s,"payload":{}}`, name)) != nil {
		return nil
	}
	if _, unknown := e.Payload.(event.Extension); unknown {
		return nil
	}
	return reflect.TypeOf(e.Payload)
}

// resolve gives an entry from a store the payload that it was dispatched with, if its type is known by
// now. If the payload does not fit the type it stays as it is, and there is an error.
func resolve(entry *Entry, types map[event.Kind]reflect.Type) (*Entry, error) {
	raw, ok := entry.Event.Payload.(event.Extension)
	if !ok {
		return entry, nil
	}
	t := types[raw.Kind]
	if t == nil {
		return entry, nil
	}
	v, err := decodeValue(raw.Data, t)
	if err != nil {
		return entry, err
	}
	known := *entry
	if p, ok := v.(event.Payload); ok {
		known.Event.Payload = p
	} else {
		known.Event.Payload = Value{raw.Kind, v}
	}
	return &known, nil
}
