// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// An enumerator is a type that lists its own values.
type enumerator interface{ Enum() []string }

var (
	enumeratorType    = reflect.TypeFor[enumerator]()
	timeType          = reflect.TypeFor[time.Time]()
	numberType        = reflect.TypeFor[json.Number]()
	textUnmarshaler   = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonUnmarshaler   = reflect.TypeFor[json.Unmarshaler]()
	schemaOfRawValues = reflect.TypeFor[json.RawMessage]()
)

// An inferrer builds the ordered document of one Go type.
type inferrer struct {
	root     reflect.Type
	building map[reflect.Type]bool
	names    map[reflect.Type]string // of types that refer to themselves
	defs     *object
}

func inferDocument(t reflect.Type) (any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	in := &inferrer{root: t, building: map[reflect.Type]bool{}, names: map[reflect.Type]string{}, defs: new(object)}
	doc, err := in.schema(t, t.String())
	if err != nil {
		return nil, err
	}
	if len(in.defs.members) > 0 {
		doc.set("$defs", in.defs)
	}
	return doc, nil
}

func (in *inferrer) schema(t reflect.Type, place string) (*object, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if o, ok, err := special(t, place); ok || err != nil {
		return o, err
	}
	switch t.Kind() {
	case reflect.Bool:
		return newObject("type", "boolean"), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return integer(t), nil
	case reflect.Float32, reflect.Float64:
		return newObject("type", "number"), nil
	case reflect.String:
		return newObject("type", "string"), nil
	case reflect.Interface:
		return new(object), nil
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		return in.composite(t, place)
	}
	return nil, invalid(place, "a %s has no JSON form; tag the field `json:\"-\"` or change its type", t.Kind())
}

// special answers for types whose JSON form does not follow from their kind.
func special(t reflect.Type, place string) (*object, bool, error) {
	pointer := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Interface:
		return nil, false, nil
	case pointer.Implements(enumeratorType):
		o, err := enumOf(t, place)
		return o, true, err
	case t == timeType:
		return newObject("type", "string", "format", "date-time"), true, nil
	case t == numberType:
		return newObject("type", "number"), true, nil
	case t == schemaOfRawValues || pointer.Implements(jsonUnmarshaler):
		return new(object), true, nil
	case pointer.Implements(textUnmarshaler):
		return newObject("type", "string"), true, nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return newObject("type", "string", "contentEncoding", "base64"), true, nil
	}
	return nil, false, nil
}

// enumOf asks a zero value for its list.
func enumOf(t reflect.Type, place string) (o *object, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = invalid(place, "Enum of a zero %s panics: %v", t, p)
		}
	}()
	var values []any
	for _, s := range reflect.New(t).Interface().(enumerator).Enum() {
		values = append(values, s)
	}
	if len(values) == 0 {
		return nil, invalid(place, "Enum of %s lists nothing", t)
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
func (in *inferrer) composite(t reflect.Type, place string) (*object, error) {
	if t.Name() == "" {
		return in.body(t, place)
	}
	if in.building[t] {
		return newObject("$ref", in.refTo(t)), nil
	}
	if name, ok := in.names[t]; ok {
		return newObject("$ref", "#/$defs/"+name), nil
	}
	in.building[t] = true
	body, err := in.body(t, place)
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
		taken := false
		for _, n := range in.names {
			taken = taken || n == name
		}
		if !taken {
			return name
		}
		name = fmt.Sprintf("%s%d", base, i)
	}
}

func (in *inferrer) body(t reflect.Type, place string) (*object, error) {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		items, err := in.schema(t.Elem(), place+"[]")
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
		return in.mapping(t, place)
	}
	return in.structure(t, place)
}

func (in *inferrer) mapping(t reflect.Type, place string) (*object, error) {
	o := newObject("type", "object")
	switch key := t.Key(); key.Kind() {
	case reflect.String:
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		o.set("propertyNames", newObject("pattern", "^-?[0-9]+$"))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		o.set("propertyNames", newObject("pattern", "^[0-9]+$"))
	default:
		if !reflect.PointerTo(key).Implements(textUnmarshaler) {
			return nil, invalid(place, "a map with keys of type %s has no JSON form; use string keys", key)
		}
	}
	values, err := in.schema(t.Elem(), place+"{}")
	if err != nil {
		return nil, err
	}
	o.set("additionalProperties", values)
	return o, nil
}

func (in *inferrer) structure(t reflect.Type, place string) (*object, error) {
	properties, required := new(object), []any{}
	for _, f := range jsonFields(t) {
		sub, err := in.field(f, place+"."+f.goName)
		if err != nil {
			return nil, err
		}
		properties.set(f.name, sub)
		if !f.optional {
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

func (in *inferrer) field(f jsonField, place string) (*object, error) {
	sub, err := in.schema(f.typ, place)
	if err != nil {
		return nil, err
	}
	if f.quoted {
		sub = newObject("type", "string")
	}
	if f.optional && nilable(f.typ) {
		sub = orNull(sub)
	}
	if f.doc != "" {
		sub.set("description", f.doc)
	}
	return sub, nil
}

func nilable(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map
}

// orNull lets an optional field be null as well as absent: models write both.
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
