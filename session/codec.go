// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
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

func encode(entry *Entry) (Record, error) {
	e, err := entry.Event.MarshalJSON()
	if err != nil {
		return Record{}, fmt.Errorf("session: %s has no JSON form and cannot be kept: %w", entry.Event.Kind, err)
	}
	data, err := plainjson.Marshal(entryWire{entry.Pos, entry.Cause, entry.Tx, e})
	if err != nil {
		return Record{}, fmt.Errorf("session: writing %s: %w", entry.Event.Kind, err)
	}
	return Record{entry.Pos, data}, nil
}

// decodeNext decodes the record that follows a position.
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
	if err := entry.Event.UnmarshalJSON(w.Event); err != nil {
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

// ownTypes are the payloads by which a session manages itself, by kind; it cannot go on without them.
var ownTypes = func() map[event.Kind]reflect.Type {
	types := map[event.Kind]reflect.Type{}
	for t := range managing {
		types[kindOf(t)] = t
	}
	return types
}()

func decodeValue(data json.RawMessage, t reflect.Type) (any, error) {
	v := reflect.New(t)
	if err := json.Unmarshal(data, v.Interface()); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", t, err)
	}
	return v.Elem().Interface(), nil
}
