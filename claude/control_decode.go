// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// The CLI's requests are decoded here rather than by encoding/json: a hook is answered while the
// CLI waits, so that its input is walked once, names are compared exactly (as the CLI, a JavaScript
// program, does), nested objects that only the callback understands are kept as raw bytes, and one
// field of an unexpected kind does not lose the others.

// decodeObject fills the struct that dst points to from the object data. Raw fields alias data.
// A fieldError means that all other fields were filled.
func decodeObject(data []byte, dst any) error {
	v := reflect.ValueOf(dst).Elem()
	return fillStruct(data, v, fieldsOf(v.Type()))
}

var errFieldKind = errors.New("unexpected kind of value")

// A fieldError names the first field whose value does not fit its Go type.
type fieldError struct {
	name string
	err  error
}

func (e *fieldError) Error() string { return fmt.Sprintf("field %q: %v", e.name, e.err) }

func (e *fieldError) Unwrap() error { return e.err }

func isFieldError(err error) bool {
	_, ok := errors.AsType[*fieldError](err)
	return ok
}

func fillStruct(data []byte, v reflect.Value, fields map[string]fieldPlan) error {
	var wrong error
	err := eachField(data, func(key, value []byte) error {
		plan, ok := fields[string(key)]
		if !ok {
			return nil
		}
		if err := plan.set(v.FieldByIndex(plan.index), value); err != nil && wrong == nil {
			wrong = &fieldError{name: string(key), err: err}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return wrong
}

type fieldPlan struct {
	index []int
	set   func(field reflect.Value, value []byte) error
}

var fieldPlans sync.Map // reflect.Type -> map[string]fieldPlan

// fieldsOf returns the JSON fields of a struct type by name, those of embedded structs included.
func fieldsOf(t reflect.Type) map[string]fieldPlan {
	if m, ok := fieldPlans.Load(t); ok {
		return m.(map[string]fieldPlan)
	}
	m := make(map[string]fieldPlan)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous && name != "" && name != "-" {
			m[name] = fieldPlan{index: f.Index, set: setterOf(f.Type)}
		}
	}
	fieldPlans.Store(t, m)
	return m
}

var (
	rawMessageType  = reflect.TypeFor[json.RawMessage]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

func setterOf(t reflect.Type) func(reflect.Value, []byte) error {
	switch {
	case t == rawMessageType:
		return setRaw
	case reflect.PointerTo(t).Implements(unmarshalerType):
		return setUnmarshaler
	case t.Kind() == reflect.Slice:
		element := setterOf(t.Elem())
		return notNull(func(f reflect.Value, value []byte) error { return setSlice(f, value, element) })
	case t.Kind() == reflect.String:
		return setString
	case t.Kind() == reflect.Bool:
		return setBool
	case t.Kind() == reflect.Int:
		return setInt
	case t.Kind() == reflect.Struct:
		fields := fieldsOf(t)
		return notNull(func(f reflect.Value, value []byte) error { return fillStruct(value, f, fields) })
	}
	return setAny
}

// notNull leaves the field alone when the value is null.
func notNull(set func(reflect.Value, []byte) error) func(reflect.Value, []byte) error {
	return func(f reflect.Value, value []byte) error {
		if string(value) == "null" {
			return nil
		}
		return set(f, value)
	}
}

func setRaw(f reflect.Value, value []byte) error {
	if !json.Valid(value) {
		return errors.New("not valid JSON")
	}
	f.SetBytes(value)
	return nil
}

func setString(f reflect.Value, value []byte) error {
	switch {
	case string(value) == "null":
		return nil
	case value[0] != '"':
		return errFieldKind
	}
	s, err := unquote(value)
	f.SetString(s)
	return err
}

func setBool(f reflect.Value, value []byte) error {
	switch string(value) {
	case "true":
		f.SetBool(true)
	case "false":
		f.SetBool(false)
	case "null":
	default:
		return errFieldKind
	}
	return nil
}

// setInt accepts a fraction too, cut off: the CLI's numbers are all floating point.
func setInt(f reflect.Value, value []byte) error {
	if string(value) == "null" {
		return nil
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil || n > 1<<53 || n < -1<<53 || n != n {
		return errFieldKind
	}
	f.SetInt(int64(n))
	return nil
}

func setUnmarshaler(f reflect.Value, value []byte) error {
	return f.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(value)
}

// setSlice fills a slice whose elements are set one by one. One that does not fit empties it: a
// list with a hole would mean something else.
func setSlice(f reflect.Value, value []byte, set func(reflect.Value, []byte) error) error {
	list := reflect.MakeSlice(f.Type(), 0, 4)
	err := eachElement(value, func(element []byte) error {
		list = reflect.Append(list, reflect.Zero(f.Type().Elem()))
		return set(list.Index(list.Len()-1), element)
	})
	if err != nil {
		return err
	}
	f.Set(list)
	return nil
}

func setAny(f reflect.Value, value []byte) error {
	if err := json.Unmarshal(value, f.Addr().Interface()); err != nil {
		return fmt.Errorf("%w: %w", errFieldKind, err)
	}
	return nil
}

// unquote decodes a JSON string. Strings without escapes, nearly all of them, cost one allocation.
func unquote(value []byte) (string, error) {
	inner := value[1 : len(value)-1]
	plain := utf8.Valid(inner)
	for _, c := range inner {
		if c == '\\' || c < ' ' {
			plain = false
			break
		}
	}
	if plain {
		return string(inner), nil
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err
}

// marshalCompact encodes v on one line, leaving <, > and & as they are, so that what the CLI sent
// goes back byte for byte.
func marshalCompact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
