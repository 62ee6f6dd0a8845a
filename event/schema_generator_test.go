// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// enums are the words of each type that has a fixed set of them. Tests hold them against the source.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[DoneStatus](): {string(DoneSuccess), string(DoneError), string(DoneInterrupted), string(DoneMaxTurns), string(DoneMaxBudget)},
	reflect.TypeFor[ToolStatus](): {string(ToolSuccess), string(ToolError), string(ToolDenied), string(ToolNeedsApproval), string(ToolCancelled)},
	reflect.TypeFor[Coverage]():   {string(CoverageComplete), string(CoveragePartial)},
	reflect.TypeFor[CostSource](): {string(CostAgentEstimate), string(CostProviderReported), string(CostAccountEstimate)},
	reflect.TypeFor[Verdict]():    {Deny.String(), Ask.String(), Allow.String()},
}

func enumWords[T any]() []any { return enums[reflect.TypeFor[T]()] }

// An object is a JSON object whose keys keep their order.
type object []member

type member struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s%q:%s", map[bool]string{true: "{", false: ","}[i == 0], m.key, value)
	}
	return append(b.Bytes(), '}'), nil
}

// A generator makes a JSON Schema of Go types. Structs become definitions.
type generator struct{ definitions map[string]object }

// generateSchema is the schema of an event.
func generateSchema() ([]byte, error) {
	g := generator{map[string]object{}}
	envelope := g.fields(reflect.TypeFor[wire[any]]())
	var kinds []object
	for _, kind := range knownKinds() {
		payload := g.schemaOf(payloadType(kind))
		kinds = append(kinds, object{
			{"if", object{{"properties", object{{"type", object{{"const", kind}}}}}}},
			{"then", object{{"properties", object{{"payload", payload}}}}},
		})
	}
	var definitions object
	for _, name := range slices.Sorted(maps.Keys(g.definitions)) {
		definitions = append(definitions, member{name, g.definitions[name]})
	}
	root := append(object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "An event of a run of Drover"},
	}, envelope...)
	root = append(root, member{"allOf", kinds}, member{"$defs", definitions})
	text, err := json.MarshalIndent(root, "", "  ")
	return append(text, '\n'), err
}

// knownKinds are those with a decoder: the common ones first.
func knownKinds() []Kind {
	return slices.SortedFunc(maps.Keys(decoders), func(a, b Kind) int {
		extends := func(k Kind) int { return strings.Count(string(k), ":") }
		if byPart := extends(a) - extends(b); byPart != 0 {
			return byPart
		}
		return strings.Compare(string(a), string(b))
	})
}

// payloadType is the type of what is written of a kind.
func payloadType(kind Kind) reflect.Type {
	p, err := decoders[kind](json.RawMessage(`{}`))
	if err != nil {
		panic(err)
	}
	return reflect.TypeOf(wireForm(p))
}

// fields are the keywords for a struct: its JSON fields, those of embedded structs included.
func (g generator) fields(t reflect.Type) object {
	var properties object
	var required []string
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && !f.Anonymous:
			panic(fmt.Sprintf("%v.%s has no JSON name", t, f.Name))
		case name == "" || name == "-":
			continue
		}
		properties = append(properties, member{name, g.schemaOfField(f)})
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return object{{"type", "object"}, {"properties", properties}, {"required", required}}
}

// schemaOfField knows the fields whose Go type does not say all.
func (g generator) schemaOfField(f reflect.StructField) any {
	switch {
	case f.Type == reflect.TypeFor[json.RawMessage]() && f.Name == "Input":
		return object{{"type", "object"}}
	case f.Type == reflect.TypeFor[Position]():
		return object{{"type", "string"}, {"pattern", `^[1-9][0-9]*([.][1-9][0-9]*)?$`}}
	case f.Type == reflect.TypeFor[Kind]():
		return object{{"type", "string"}, {"minLength", 1}}
	case f.Name == "Timestamp": // before 1970 it is negative
		return object{{"type", "integer"}}
	case f.Name == "USD":
		return object{{"type", "number"}, {"minimum", 0}}
	}
	return g.schemaOf(f.Type)
}

func (g generator) schemaOf(t reflect.Type) any {
	if words := enums[t]; words != nil {
		return object{{"enum", words}}
	}
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer:
		return g.schemaOf(t.Elem())
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int, reflect.Int64:
		return object{{"type", "integer"}, {"minimum", 0}, {"maximum", maxCount}} // they all count
	case reflect.Float64:
		return object{{"type", "number"}}
	case reflect.Map:
		return object{{"type", "object"}}
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return true
		}
		return object{{"type", "array"}, {"items", g.schemaOf(t.Elem())}}
	case reflect.Struct:
		return g.reference(t)
	}
	panic(fmt.Sprintf("no schema for %v", t))
}

// reference defines a struct once, under its name. The wire form of a type has the name of the type.
func (g generator) reference(t reflect.Type) object {
	name := strings.TrimSuffix(t.Name(), "Wire")
	name = strings.ToUpper(name[:1]) + name[1:]
	if g.definitions[name] == nil {
		g.definitions[name] = g.fields(t)
	}
	return object{{"$ref", "#/$defs/" + name}}
}

const schemaPath = "event.schema.json"

func TestSchema_IsUpToDate(t *testing.T) {
	want, err := generateSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaPath, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(Schema())); diff != "" {
		t.Errorf("%s is not what the types give; rewrite it with\n  go test ./event -run TestSchema -update\n(-want +got):\n%s", schemaPath, diff)
	}
}
