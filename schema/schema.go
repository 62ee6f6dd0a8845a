// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"reflect"
	"sync"
)

// A Schema is a JSON Schema that was checked and prepared for validation. Make one with [For], [ForType] or [Parse].
type Schema struct {
	text json.RawMessage
	doc  any // the ordered form of text
	root *node
	// properties are the names that doc has under "properties".
	properties []string
	// goType is what every valid value must decode into. It is nil for schemas that were parsed.
	goType reflect.Type
	// exact says that every valid value decodes, if its numbers are not odd; see readValue.
	exact   bool
	cliForm func() cliForm // computed at its first use
}

// Parse reads a schema of draft-07 or 2020-12. A text that uses no keyword in which the two differ
// needs no "$schema"; the older forms of tuples and dependencies are understood in either.
//
// References lead only to locations inside the schema ("#", "#/$defs/x"). The error is a [*LocationError] that wraps [ErrInvalid].
func Parse(text json.RawMessage) (*Schema, error) {
	doc, err := parseOrdered(text)
	if err != nil {
		return nil, invalid("#", "%v", err)
	}
	return build(doc)
}

// MustParse is [Parse] for schemas written into a program; it panics on an error.
func MustParse(text string) *Schema {
	s, err := Parse(json.RawMessage(text))
	if err != nil {
		panic(err)
	}
	return s
}

func build(doc any) (*Schema, error) {
	c := &compiler{nodes: map[string]*node{}}
	root, err := c.document(doc)
	if err != nil {
		return nil, err
	}
	s := &Schema{text: appendJSON(nil, doc), doc: doc, root: root, properties: propertyNames(doc)}
	s.cliForm = sync.OnceValue(func() cliForm { return newCLIForm(s) })
	return s, nil
}

// JSON returns the schema as compact JSON. The caller must not change it.
func (s *Schema) JSON() json.RawMessage { return s.text }

// String returns the schema as JSON text.
func (s *Schema) String() string { return string(s.text) }

// MarshalJSON makes a schema embeddable in a larger document.
func (s *Schema) MarshalJSON() ([]byte, error) { return s.text, nil }

type inferred struct {
	schema *Schema
	err    error
}

var inputsByType, outputsByType sync.Map // reflect.Type -> inferred

// For returns the schema of T. See [ForType].
func For[T any]() (*Schema, error) { return ForType(reflect.TypeFor[T]()) }

// ForType returns the schema of the JSON form of t, computed once per type.
//
//   - Struct fields are named and left out as encoding/json does it; other properties are refused.
//   - A field is required unless it is a pointer or tagged omitempty or omitzero. Optional pointers,
//     slices and maps may also be null.
//   - A doc tag becomes the description: `json:"path" doc:"file to read"`.
//   - Constraints are tags with the names that JSON Schema gives them: minimum, maximum, exclusiveMinimum, exclusiveMaximum
//     and multipleOf for numbers; minLength, maxLength, pattern and format for strings; enum and examples, separated by
//     commas, for both; minItems, maxItems and uniqueItems for slices; minProperties and maxProperties for maps and structs;
//     default for all, as JSON, but a string as it is. A constraint of numbers or strings on a slice or an array of them is
//     one of its elements. A constraint can narrow what the Go type allows, never widen it, and one that does not fit its
//     field is an error. Format, default and examples only tell the model something: nothing is checked or filled in.
//   - A type with a method Enum() []string is one of these strings.
//   - time.Time is a string of format date-time, []byte a base64 string; a type that unmarshals
//     itself from text is a string; one that unmarshals itself from JSON may be anything.
//   - Recursive types refer to themselves through $defs.
//
// A value that passes [Schema.Validate] decodes into t. The error, a [*LocationError] that wraps [ErrInvalid], names the field.
func ForType(t reflect.Type) (*Schema, error) { return infer(t, &inputsByType, false) }

// ForOutputType returns the schema of what encoding/json writes for a t, computed once per type. It differs from [ForType]
// where Go writes null: nil slices, maps and pointers. A field is required unless it is tagged omitempty or omitzero or is
// in an embedded pointer. The value itself is not null: a pointer stands for what it points to.
func ForOutputType(t reflect.Type) (*Schema, error) { return infer(t, &outputsByType, true) }

func infer(t reflect.Type, cache *sync.Map, output bool) (*Schema, error) {
	if got, ok := cache.Load(t); ok {
		e := got.(inferred)
		return e.schema, e.err
	}
	// Two goroutines may both compute it; all callers get the one that was stored first.
	got, _ := cache.LoadOrStore(t, newInferred(t, output))
	e := got.(inferred)
	return e.schema, e.err
}

func newInferred(t reflect.Type, output bool) inferred {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	doc, exact, err := inferDocument(t, output)
	if err != nil {
		return inferred{err: err}
	}
	s, err := build(doc)
	if err == nil && !output {
		s.goType, s.exact = t, exact
	}
	return inferred{s, err}
}

// Decode checks raw against s and decodes it into a T. Where [ForCLI] wraps s, raw may also be the wrapped form that the CLI
// gives back. A property whose name differs only in case from one of the schema is refused: encoding/json would take it for
// that one; so are whole numbers that may have been rounded, as [Schema.ValidateDoubles] does it. Every failure is a
// [*ValidationError], so that one repair loop handles them all.
func Decode[T any](s *Schema, raw json.RawMessage) (T, error) {
	var out T
	raw = s.unwrap(raw)
	if err := s.validate(raw, rules{exactCase: true, doubles: true}); err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		var zero T
		return zero, &ValidationError{[]Violation{{Pointer: "", Keyword: "decode", Message: err.Error()}}}
	}
	return out, nil
}

// Properties returns the names of the root's properties, in their order. The caller must not change the list.
func (s *Schema) Properties() []string { return s.properties }

func propertyNames(doc any) []string {
	root, ok := doc.(*object)
	if !ok {
		return nil
	}
	value, _ := root.get("properties")
	properties, ok := value.(*object)
	if !ok {
		return nil
	}
	var names []string
	for _, m := range properties.members {
		names = append(names, m.name)
	}
	return names
}

// IsObject reports whether the schema says at its root that the value is an object, as the input of a tool must be.
func (s *Schema) IsObject() bool { return s.root.types == typeObject }
