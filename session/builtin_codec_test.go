// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/drover-agents/drover/event"
)

func TestCodec_BuiltInEventsKeepTheirTypes(t *testing.T) {
	for kind, typ := range builtinTypes {
		payload := reflect.Zero(typ).Interface().(event.Payload)
		record, err := encode(&Entry{Pos: 1, Event: event.New(payload)})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		entry, err := decode(record)
		if err != nil || reflect.TypeOf(entry.Event.Payload) != typ || entry.Event.Kind != kind {
			t.Errorf("%s came out as a %T of kind %s: %v", kind, entry.Event.Payload, entry.Event.Kind, err)
		}
	}
}

func TestCodec_BuiltInEventOfAnotherVersionStaysRaw(t *testing.T) {
	event := event.New(event.Extension{Kind: "tool:invoked", Data: json.RawMessage(`{"toolUseId":7}`)})
	record, err := encode(&Entry{Pos: 1, Event: event})
	if err != nil {
		t.Fatal(err)
	}
	entry, err := decode(record)
	if err != nil {
		t.Fatalf("the log cannot be read any more: %v", err)
	}
	if again, err := encode(entry); err != nil || string(again.Data) != string(record.Data) {
		t.Errorf("it came back as %s (%v), want %s", again.Data, err, record.Data)
	}
}
