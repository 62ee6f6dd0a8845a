// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// misfits says why encoding/json does not decode raw into a t. It costs one decoding where it does.
func misfits(t reflect.Type, raw []byte) []Violation {
	err := decode(t, raw)
	if err == nil {
		return nil
	}
	var m misfit
	m.look(t, raw)
	if len(m.found) == 0 {
		m.report("decode", "cannot be read: %s", goReason(err))
	}
	return m.found
}

// decode is json.Unmarshal into a new t. A method of t that panics is an error.
func decode(t reflect.Type, raw []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading a %s panics: %v", t, p)
		}
	}()
	return json.Unmarshal(raw, reflect.New(t).Interface())
}

func goReason(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }

// A misfit looks for the places of a value that do not decode. It need not be fast.
type misfit struct{ walk }

func (m *misfit) look(t reflect.Type, raw []byte) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	in := inferrer{}
	if _, ok, _ := in.special(t, ""); !ok && string(raw) != "null" {
		switch t.Kind() {
		case reflect.Struct:
			m.lookIntoStruct(t, raw)
			return
		case reflect.Map:
			m.lookIntoMap(t, raw)
			return
		case reflect.Slice, reflect.Array:
			m.lookIntoList(t, raw)
			return
		}
	}
	if err := decode(t, raw); err != nil {
		m.report("decode", "%s", demand(t, err))
	}
}

func (m *misfit) lookIntoStruct(t reflect.Type, raw []byte) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return
	}
	for _, f := range jsonFields(t) {
		part, ok := members[f.name]
		switch {
		case !ok:
		case f.quoted:
			m.lookIntoQuotes(f, part)
		default:
			m.inside(step{name: f.name}, f.typ, part)
		}
	}
}

// lookIntoQuotes looks at a field with the ",string" option.
func (m *misfit) lookIntoQuotes(f jsonField, part []byte) {
	only := reflect.StructOf([]reflect.StructField{{Name: "F", Type: f.typ, Tag: `json:"f,string"`}})
	if err := decode(only, appendJSON(nil, newObject("f", json.Number(part)))); err != nil {
		m.reportProperty(f.name, "decode", "must be a string that holds a %s", f.typ)
	}
}

func (m *misfit) lookIntoMap(t reflect.Type, raw []byte) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return
	}
	onlyKey := reflect.MapOf(t.Key(), reflect.TypeFor[struct{}]())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err := decode(onlyKey, appendJSON(nil, newObject(name, new(object)))); err != nil {
			m.reportProperty(name, "decode", "has a name that is no %s", t.Key())
		}
		m.inside(step{name: name}, t.Elem(), members[name])
	}
}

func (m *misfit) lookIntoList(t reflect.Type, raw []byte) {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return
	}
	for i, e := range elements {
		m.inside(step{index: i, elem: true}, t.Elem(), e)
	}
}

func (m *misfit) inside(s step, t reflect.Type, raw []byte) {
	m.path = append(m.path, s)
	m.look(t, raw)
	m.path = m.path[:len(m.path)-1]
}

// demand says what a value must be to be a t.
func demand(t reflect.Type, err error) string {
	switch kind := t.Kind(); {
	case t == timeType:
		return "must be a time such as 2006-01-02T15:04:05Z"
	case isBytes(t):
		return "must be base64"
	case reflect.PointerTo(t).Implements(jsonUnmarshaler), reflect.PointerTo(t).Implements(textUnmarshaler):
		return "cannot be read: " + goReason(err)
	case kind >= reflect.Int && kind <= reflect.Uintptr:
		return fmt.Sprintf("must be an integer in the range of %s, written without a fraction or an exponent", kind)
	case kind == reflect.Float32 || kind == reflect.Float64:
		return fmt.Sprintf("must be a number in the range of %s", kind)
	}
	return "cannot be read: " + goReason(err)
}
