// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

type enumerator interface{ Enum() []string }

var (
	enumeratorType  = reflect.TypeFor[enumerator]()
	timeType        = reflect.TypeFor[time.Time]()
	numberType      = reflect.TypeFor[json.Number]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	rawMessageType  = reflect.TypeFor[json.RawMessage]()
)

// An inferrer builds the ordered document of one Go type: of what encoding/json reads into it or, for output, writes.
type inferrer struct {
	output   bool
	root     reflect.Type
	building map[reflect.Type]bool
	names    map[reflect.Type]string // of types that refer to themselves
	defs     *object
	// inexact is set by what Go may refuse to read although the schema allows it.
	inexact bool
}

func inferDocument(t reflect.Type, output bool) (root any, exact bool, err error) {
	in := &inferrer{output: output, root: t, building: map[reflect.Type]bool{}, names: map[reflect.Type]string{}, defs: new(object)}
	doc, err := in.schema(t, t.String())
	if err != nil {
		return nil, false, err
	}
	if len(in.defs.members) > 0 {
		doc.set("$defs", in.defs)
	}
	return doc, !in.inexact, nil
}

func (in *inferrer) schema(t reflect.Type, path string) (*object, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if o, ok, err := in.special(t, path); ok || err != nil {
		return o, err
	}
	switch t.Kind() {
	case reflect.Bool:
		return newObject("type", "boolean"), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		o := integer(t)
		in.inexact = in.inexact || t.Bits() < 64 && !o.has("maximum") // int where it has 32 bits
		return o, nil
	case reflect.Float32, reflect.Float64:
		return newObject("type", "number"), nil
	case reflect.String:
		return newObject("type", "string"), nil
	case reflect.Interface:
		in.inexact = in.inexact || t.NumMethod() > 0
		return new(object), nil
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		return in.composite(t, path)
	}
	return nil, invalid(path, "a %s has no JSON form; tag the field `json:\"-\"` or change its type", t.Kind())
}

// element is schema for what can be null where Go writes it.
func (in *inferrer) element(t reflect.Type, path string) (*object, error) {
	o, err := in.schema(t, path)
	if err == nil && in.output && nilable(t) {
		o = orNull(o)
	}
	return o, err
}

// special answers for types whose JSON form does not follow from their kind.
func (in *inferrer) special(t reflect.Type, path string) (*object, bool, error) {
	switch {
	case t.Kind() == reflect.Interface:
		return nil, false, nil
	case reflect.PointerTo(t).Implements(enumeratorType):
		in.inexact = in.inexact || in.ownForm(t) != formOfKind
		o, err := in.enumOf(t, path)
		return o, true, err
	case t == timeType:
		in.inexact = true
		return newObject("type", "string", "format", "date-time"), true, nil
	case t == numberType:
		return newObject("type", "number"), true, nil
	case t == rawMessageType:
		return new(object), true, nil
	}
	switch in.ownForm(t) {
	case formAny:
		in.inexact = true
		return new(object), true, nil
	case formText:
		in.inexact = true
		return newObject("type", "string"), true, nil
	}
	if isBytes(t) {
		in.inexact = true
		return newObject("type", "string", "contentEncoding", "base64"), true, nil
	}
	return nil, false, nil
}

// A form is what a type makes of itself in JSON.
type form int

const (
	formOfKind form = iota // whatever encoding/json makes of its kind
	formText
	formAny
)

// ownForm finds out whether t reads or writes itself. A method of the pointer writes only values
// that can be addressed, so that both forms are possible then.
func (in *inferrer) ownForm(t reflect.Type) form {
	pointer := reflect.PointerTo(t)
	if !in.output {
		switch {
		case pointer.Implements(jsonUnmarshaler):
			return formAny
		case pointer.Implements(textUnmarshaler):
			return formText
		}
		return formOfKind
	}
	switch {
	case pointer.Implements(jsonMarshaler):
		return formAny
	case t.Implements(textMarshaler):
		return formText
	case pointer.Implements(textMarshaler):
		return formAny
	}
	return formOfKind
}

// isBytes reports whether encoding/json writes t as a base64 string.
func isBytes(t reflect.Type) bool {
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Uint8 {
		return false
	}
	elem := reflect.PointerTo(t.Elem())
	return !elem.Implements(jsonMarshaler) && !elem.Implements(textMarshaler)
}

func (in *inferrer) enumOf(t reflect.Type, path string) (o *object, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = invalid(path, "Enum of a zero %s panics: %v", t, p)
		}
	}()
	var values []any
	for _, s := range reflect.New(t).Interface().(enumerator).Enum() {
		values = append(values, s)
	}
	if len(values) == 0 {
		return nil, invalid(path, "Enum of %s lists nothing", t)
	}
	if t.Kind() != reflect.String && in.ownForm(t) == formOfKind {
		return nil, invalid(path, "%s has an Enum of strings but is no string; give it MarshalText and UnmarshalText", t)
	}
	return newObject("type", "string", "enum", values), nil
}

// integer bounds the sized types, so that a value that passes also decodes.
func integer(t reflect.Type) *object {
	o := newObject("type", "integer")
	bits := t.Bits()
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32:
		o.set("minimum", json.Number(strconv.FormatInt(math.MinInt64>>(64-bits), 10)))
		o.set("maximum", json.Number(strconv.FormatInt(math.MaxInt64>>(64-bits), 10)))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		o.set("minimum", 0)
		o.set("maximum", json.Number(strconv.FormatUint(math.MaxUint64>>(64-bits), 10)))
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		o.set("minimum", 0)
	}
	return o
}

// composite handles the kinds that can contain themselves. A named type met again while it is being
// built becomes a definition, or "#" if it is the root.
func (in *inferrer) composite(t reflect.Type, path string) (*object, error) {
	if t.Name() == "" {
		return in.body(t, path)
	}
	if in.building[t] {
		return newObject("$ref", in.refTo(t)), nil
	}
	if name, ok := in.names[t]; ok {
		return newObject("$ref", "#/$defs/"+name), nil
	}
	in.building[t] = true
	body, err := in.body(t, path)
	delete(in.building, t)
	if err != nil {
		return nil, err
	}
	if name, recursive := in.names[t]; recursive {
		in.defs.set(name, body)
		return newObject("$ref", "#/$defs/"+name), nil
	}
	return body, nil
}

func (in *inferrer) refTo(t reflect.Type) string {
	if t == in.root {
		return "#"
	}
	if _, ok := in.names[t]; !ok {
		in.names[t] = in.freshName(t)
	}
	return "#/$defs/" + in.names[t]
}

// freshName makes a name that needs no escaping in a pointer or a URI.
func (in *inferrer) freshName(t reflect.Type) string {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, t.Name())
	for i, name := 2, base; ; i++ {
		if !slices.Contains(slices.Collect(maps.Values(in.names)), name) {
			return name
		}
		name = fmt.Sprintf("%s%d", base, i)
	}
}

func (in *inferrer) body(t reflect.Type, path string) (*object, error) {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		items, err := in.element(t.Elem(), path+"[]")
		if err != nil {
			return nil, err
		}
		o := newObject("type", "array", "items", items)
		if t.Kind() == reflect.Array {
			o.set("minItems", t.Len())
			o.set("maxItems", t.Len())
		}
		return o, nil
	case reflect.Map:
		return in.mapping(t, path)
	}
	return in.structure(t, path)
}

func (in *inferrer) mapping(t reflect.Type, path string) (*object, error) {
	o := newObject("type", "object")
	names, err := in.keys(t.Key(), path)
	if err != nil {
		return nil, err
	}
	if names != "" {
		in.inexact = true // the pattern does not bound them
		o.set("propertyNames", newObject("pattern", names))
	}
	values, err := in.element(t.Elem(), path+"{}")
	if err != nil {
		return nil, err
	}
	o.set("additionalProperties", values)
	return o, nil
}

// keys gives the pattern of the names for keys of type t. Numbers have one spelling, so that no two names are one key.
func (in *inferrer) keys(t reflect.Type, path string) (string, error) {
	text := reflect.PointerTo(t).Implements(textUnmarshaler)
	if in.output {
		text = t.Implements(textMarshaler)
	}
	switch kind := t.Kind(); {
	case kind == reflect.String || text:
		in.inexact = in.inexact || text
		return "", nil
	case kind >= reflect.Int && kind <= reflect.Int64:
		return "^(0|-?[1-9][0-9]*)$", nil
	case kind >= reflect.Uint && kind <= reflect.Uintptr:
		return "^(0|[1-9][0-9]*)$", nil
	}
	return "", invalid(path, "a map with keys of type %s has no JSON form; use string keys", t)
}

func (in *inferrer) structure(t reflect.Type, path string) (*object, error) {
	if err := refuseLostTags(t, path); err != nil {
		return nil, err
	}
	properties, required := new(object), []any{}
	for _, f := range jsonFields(t) {
		sub, err := in.field(f, path+"."+f.goName)
		if err != nil {
			return nil, err
		}
		properties.set(f.name, sub)
		if !in.optional(f) {
			required = append(required, f.name)
		}
	}
	o := newObject("type", "object", "properties", properties)
	if len(required) > 0 {
		o.set("required", required)
	}
	o.set("additionalProperties", false)
	return o, nil
}

func (in *inferrer) optional(f jsonField) bool {
	if in.output {
		return f.omits || f.pointer
	}
	return f.omits || f.typ.Kind() == reflect.Pointer
}

// nullable reports whether a field may be null: where it may be absent, since models write both; in output, where Go does.
func (in *inferrer) nullable(f jsonField) bool {
	if in.output {
		return !f.omits && nilable(f.typ)
	}
	return in.optional(f) && nilable(f.typ)
}

func (in *inferrer) field(f jsonField, path string) (*object, error) {
	if f.unreachable && !in.output {
		return nil, invalid(path, "it is in an embedded pointer to an unexported struct, which encoding/json cannot set; "+
			"embed the struct itself or export it")
	}
	sub, err := in.schema(f.typ, path)
	if err != nil {
		return nil, err
	}
	if f.quoted && in.honoursQuotes(f.typ) {
		in.inexact = true
		sub = newObject("type", "string")
	}
	if err := constrain(sub, f, path); err != nil {
		return nil, err
	}
	if in.nullable(f) {
		sub = orNull(sub)
	}
	if doc := f.tag.Get("doc"); doc != "" {
		sub.set("description", doc)
	}
	return sub, nil
}

// honoursQuotes reports whether ",string" changes the form: not where a type writes itself.
func (in *inferrer) honoursQuotes(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return !in.output || in.ownForm(t) == formOfKind
}

func nilable(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map
}

func orNull(o *object) *object {
	if o.has("$ref") {
		return newObject("anyOf", []any{o, newObject("type", "null")})
	}
	if t, ok := o.get("type"); ok {
		o.set("type", []any{t, "null"})
	}
	if values, ok := o.get("enum"); ok {
		o.set("enum", append(values.([]any), nil))
	}
	return o
}
