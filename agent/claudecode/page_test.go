// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/workspace"
)

// reportedPayloads are the payloads that a cell, its gateway and a workspace emit, as pointers to decode into.
func reportedPayloads() []event.Payload {
	return []event.Payload{
		&isolation.Protection{}, &isolation.Breach{},
		&gateway.ModelCall{}, &gateway.Refused{}, &gateway.Limit{}, &gateway.BackOff{}, &proxy.Connection{},
		&workspace.Restored{},
	}
}

// sectionOf is the part of the page of events that is about a kind.
func sectionOf(t *testing.T, kind event.Kind) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n### `"+string(kind)+"`\n")
	text, _, _ = strings.Cut(text, "\n##")
	return text
}

func TestDocs_NameEveryFieldOfCellEvents(t *testing.T) {
	for _, payload := range reportedPayloads() {
		text := sectionOf(t, payload.EventKind())
		for _, name := range jsonNames(reflect.TypeOf(payload).Elem()) {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("the page does not name %s of %s", name, payload.EventKind())
			}
		}
	}
}

func jsonNames(of reflect.Type) []string {
	var names []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "-" && !field.Anonymous {
			names = append(names, name)
		}
		if field.Type.Kind() == reflect.Struct {
			names = append(names, jsonNames(field.Type)...)
		}
	}
	return names
}

var lineOfJSON = regexp.MustCompile("(?s)\n```jsonl\n(.*?)\n```\n")

// The lines of the page are what the Go types write.
func TestDocs_ExampleLinesAreCellEvents(t *testing.T) {
	lines, err := schema.Parse(event.Schema())
	if err != nil {
		t.Fatal(err)
	}
	for _, payload := range reportedPayloads() {
		block := lineOfJSON.FindStringSubmatch(sectionOf(t, payload.EventKind()))
		if block == nil {
			t.Errorf("the page has no line of %s", payload.EventKind())
			continue
		}
		for line := range strings.SplitSeq(block[1], "\n") {
			if err := lines.Validate(json.RawMessage(line)); err != nil {
				t.Errorf("%s: %v", payload.EventKind(), err)
			}
			checkLine(t, payload, line)
		}
	}
}

func checkLine(t *testing.T, payload event.Payload, line string) {
	t.Helper()
	var whole struct {
		Type    event.Kind      `json:"type"`
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal([]byte(line), &whole); err != nil || whole.Type != payload.EventKind() {
		t.Errorf("%s: %v, of type %s, want %s", line, err, whole.Type, payload.EventKind())
		return
	}
	fresh := reflect.New(reflect.TypeOf(payload).Elem()).Interface()
	strict := json.NewDecoder(bytes.NewReader(whole.Payload))
	if _, own := fresh.(json.Unmarshaler); !own {
		strict.DisallowUnknownFields()
	}
	if err := strict.Decode(fresh); err != nil {
		t.Errorf("%s: %v", payload.EventKind(), err)
		return
	}
	if again, err := json.Marshal(fresh); err != nil || string(again) != string(whole.Payload) {
		t.Errorf("%s: written again it is\n%s (%v), want\n%s", payload.EventKind(), again, err, whole.Payload)
	}
}
