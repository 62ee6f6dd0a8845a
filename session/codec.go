// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

// entryWire is an entry in a store. Readers must pass over fields that they do not know.
type entryWire struct {
	Pos   int64           `json:"pos"`
	Cause string          `json:"toolUseId,omitzero"`
	Tx    int64           `json:"tx,omitzero"`
	Event json.RawMessage `json:"event"`
}

// Record returns the entry as a store keeps it.
func (e Entry) Record() (Record, error) { return encode(&e) }

func encode(entry *Entry) (Record, error) {
	e, err := encodeEvent(entry.Event)
	if err != nil {
		return Record{}, fmt.Errorf("session: %s has no JSON form and cannot be kept: %w", entry.Event.Kind, err)
	}
	data, err := plainjson.Marshal(entryWire{entry.Pos, entry.Cause, entry.Tx, e})
	if err != nil {
		return Record{}, fmt.Errorf("session: writing %s: %w", entry.Event.Kind, err)
	}
	return Record{entry.Pos, data}, nil
}

func encodeEvent(e event.Event) (data []byte, err error) {
	defer asError(&err)
	if reflect.TypeOf(e.Payload).PkgPath() != extensionType.PkgPath() { // those have a form of their own
		e.Payload = Value{e.Kind, valueOf(e.Payload)}
	}
	return e.MarshalJSON()
}

// asError makes an error of a panic. The methods that write and read the JSON of a value are others' code,
// and run where a panic would leave things half done.
func asError(err *error) {
	if p := recover(); p != nil {
		*err = panicError{p}
	}
}

func decodeNext(record Record, after int64) (*Entry, error) {
	if record.Pos != after+1 {
		return nil, fmt.Errorf("entry %d: %w: it comes after entry %d", record.Pos, ErrCorrupt, after)
	}
	return decode(record)
}

func decode(record Record) (*Entry, error) {
	var w entryWire
	if err := json.Unmarshal(record.Data, &w); err != nil {
		return nil, fmt.Errorf("entry %d: %w: %w", record.Pos, ErrCorrupt, err)
	}
	entry := &Entry{Pos: record.Pos, Cause: w.Cause, Tx: w.Tx}
	if err := decodeEvent(w.Event, &entry.Event); err != nil {
		return nil, fmt.Errorf("entry %d: %w: %w", record.Pos, ErrCorrupt, err)
	}
	raw, ok := entry.Event.Payload.(event.Extension)
	if t := ownTypes[raw.Kind]; ok && t != nil {
		v, err := decodeValue(raw.Data, t)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w: %w", record.Pos, ErrCorrupt, err)
		}
		entry.Event.Payload = v.(event.Payload)
	} else if ok {
		entry.Event.Payload = decodeBuiltin(raw)
	}
	return entry, nil
}

// decodeEvent reads an event. A payload that does not fit its kind, because another version of this
// package has written it or because it was dispatched so, stays as it came: the others are good.
func decodeEvent(data json.RawMessage, e *event.Event) error {
	fault := e.UnmarshalJSON(data)
	if fault == nil {
		return nil
	}
	var fields map[string]json.RawMessage
	var kind event.Kind
	if json.Unmarshal(data, &fields) != nil || json.Unmarshal(fields["type"], &kind) != nil || kind == "" {
		return fault
	}
	fields["type"] = json.RawMessage(`"session:undecoded"`) // an unknown type
	unknown, err := json.Marshal(fields)
	if err != nil || e.UnmarshalJSON(unknown) != nil {
		return fault
	}
	e.Kind, e.Payload = kind, event.Extension{Kind: kind, Data: fields["payload"]}
	return nil
}

// ownTypes are the payloads by which a session manages itself, by kind; it cannot go on without them.
var ownTypes = typesByKind(maps.Keys(managing))

func decodeValue(data json.RawMessage, t reflect.Type) (_ any, err error) {
	defer asError(&err)
	v := reflect.New(t)
	if err := json.Unmarshal(data, v.Interface()); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", t, err)
	}
	return v.Elem().Interface(), nil
}
