// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"reflect"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Schema is a JSON Schema that was checked and prepared for validation. Make one with [For],
// [ForType] or [Parse].
type Schema struct {
	text json.RawMessage
	doc  any // the ordered form of text
	root *node
	// arbiter decides what the walk over root does not cover (unevaluatedProperties and
	// unevaluatedItems). It is nil where the walk covers everything.
	arbiter *jsonschema.Resolved
	cliForm func() cliForm // computed at its first use
}

// Parse reads a schema of draft-07 or 2020-12. A text that uses no keyword in which the two differ
// needs no "$schema"; the older forms of tuples and dependencies are understood in either.
//
// References may lead only to places inside the schema ("#", "#/$defs/x"). The error is a
// [*PlaceError] that wraps [ErrInvalid].
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
	root, incomplete, err := compile(doc)
	if err != nil {
		return nil, err
	}
	s := &Schema{text: appendJSON(nil, doc), doc: doc, root: root}
	s.cliForm = sync.OnceValue(func() cliForm { return newCLIForm(s) })
	if incomplete {
		if s.arbiter, err = newArbiter(doc); err != nil {
			return nil, invalid("#", "%v", err)
		}
	}
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

var inferredByType sync.Map // reflect.Type -> inferred

// For returns the schema of T. See [ForType].
func For[T any]() (*Schema, error) { return ForType(reflect.TypeFor[T]()) }

// ForType returns the schema of the JSON form of t, computed once per type.
//
//   - Struct fields are named and left out as encoding/json does it; other properties are refused.
//   - A field is required unless it is a pointer or tagged omitempty or omitzero. Optional pointers,
//     slices and maps may also be null.
//   - A doc tag becomes the description: `json:"path" doc:"file to read"`.
//   - A type with a method Enum() []string is one of these strings.
//   - time.Time is a string of format date-time, []byte a base64 string; a type that marshals itself
//     to text is a string; one that marshals itself to JSON may be anything.
//   - Recursive types refer to themselves through $defs.
//
// The error is a [*PlaceError] that wraps [ErrInvalid] and names the field.
func ForType(t reflect.Type) (*Schema, error) {
	if got, ok := inferredByType.Load(t); ok {
		e := got.(inferred)
		return e.schema, e.err
	}
	var e inferred
	if doc, err := inferDocument(t); err != nil {
		e.err = err
	} else {
		e.schema, e.err = build(doc)
	}
	// Two goroutines may both compute it; all callers get the one that was stored first.
	got, _ := inferredByType.LoadOrStore(t, e)
	e = got.(inferred)
	return e.schema, e.err
}

// Decode checks raw against s and decodes it into a T. Where [ForCLI] wraps s, raw may also be the
// wrapped form that the CLI gives back. Every failure is a [*ValidationError], so that one repair
// loop handles them all.
func Decode[T any](s *Schema, raw json.RawMessage) (T, error) {
	var out T
	raw = s.unwrap(raw)
	if err := s.Validate(raw); err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		var zero T
		return zero, &ValidationError{[]Violation{{Pointer: "", Keyword: "decode", Message: err.Error()}}}
	}
	return out, nil
}

// IsObject reports whether the schema says at its root that the value is an object, as the input of
// a tool must be.
func (s *Schema) IsObject() bool { return s.root.types == typeObject }

// ForOutputType returns the schema of what encoding/json writes for a t. It differs from [ForType]
// where Go writes null: nil slices, maps and pointers.
func ForOutputType(t reflect.Type) (*Schema, error) { return ForType(t) }
