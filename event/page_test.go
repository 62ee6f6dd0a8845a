// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readPage is the page for readers of events.
func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var jsonBlock = regexp.MustCompile("(?s)\n```json\n(.*?)\n```\n")

func exampleLines(page string) []string {
	var lines []string
	for _, block := range jsonBlock.FindAllStringSubmatch(page, -1) {
		lines = append(lines, strings.Split(block[1], "\n")...)
	}
	return lines
}

func TestPage_LinesAreEvents(t *testing.T) {
	var golden []string
	for name := range goldenEvents {
		_, lines := readGolden(t, name)
		golden = append(golden, lines...)
	}
	j := newJudge(t)
	lines := exampleLines(readPage(t))
	for _, text := range lines {
		if !slices.Contains(golden, text) {
			t.Errorf("no golden file has the line %s", text)
		}
		if err := j.problem([]byte(text)); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		if again := string(line(t, read(t, text))); again != text {
			t.Errorf("read and written again it is %s, want %s", again, text)
		}
	}
	if len(lines) < len(decoders) {
		t.Errorf("the page has only %d lines", len(lines))
	}
}

// section is the part of the page about a kind.
func section(page string, kind Kind) string {
	_, text, _ := strings.Cut(page, "\n### `"+string(kind)+"`\n")
	before, _, _ := strings.Cut(text, "\n##")
	return before
}

func TestPage_HasEveryKindAndItsFields(t *testing.T) {
	page := readPage(t)
	for _, kind := range knownKinds() {
		text := section(page, kind)
		if !strings.Contains(text, `{"type":"`+string(kind)+`"`) {
			t.Errorf("%s has no section with an example", kind)
		}
		for _, name := range fieldNames(payloadType(kind)) {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("the section about %s does not name %s", kind, name)
			}
		}
	}
	for _, name := range fieldNames(reflect.TypeFor[wire[any]]()) {
		if !strings.Contains(page, "\n| `"+name+"` |") {
			t.Errorf("the page does not name %s of the envelope", name)
		}
	}
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for _, m := range (generator{map[string]object{}}).fields(t) {
		if properties, ok := m.value.(object); ok && m.key == "properties" {
			for _, p := range properties {
				names = append(names, p.key)
			}
		}
	}
	return names
}

// What is deeper in a payload is somewhere on the page, and so does every word of the schema.
func TestPage_HasEveryDefinitionOfTheSchema(t *testing.T) {
	var root struct {
		Defs map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	page := readPage(t)
	for name, definition := range root.Defs {
		for field, value := range definition.Properties {
			if !strings.Contains(page, "`"+field+"`") && !strings.Contains(page, "."+field+"`") {
				t.Errorf("the page does not name %s of %s", field, name)
			}
			var words struct{ Enum []string }
			_ = json.Unmarshal(value, &words) // a field that takes everything is no object
			for _, word := range words.Enum {
				if !strings.Contains(page, "`"+word+"`") {
					t.Errorf("the page does not have the word %s of %s.%s", word, name, field)
				}
			}
		}
	}
	if len(root.Defs) < len(decoders) {
		t.Errorf("the schema has only %d definitions", len(root.Defs))
	}
}
