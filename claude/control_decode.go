// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/drover-agents/drover/internal/plainjson"
)

// The CLI's requests are decoded here rather than by encoding/json: a hook is answered while the CLI waits, so that its
// input is walked once, names are compared exactly (as the CLI, a JavaScript program, does), nested objects that only the
// callback understands are kept as raw bytes, and one field of an unexpected kind does not lose the others.

// decodeObject fills the struct that dst points to from the object data. Raw fields alias data.
// A fieldError means that all other fields were filled.
func decodeObject(data []byte, dst any) error {
	var s plainjson.Scanner
	s.Reset(data)
	if s.Kind() != plainjson.Object {
		return notObject(&s)
	}
	v := reflect.ValueOf(dst).Elem()
	wrong := fillStruct(&s, v, fieldsOf(v.Type()))
	if err := s.End(); err != nil {
		return err
	}
	return wrong
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

// fillStruct consumes an object. It returns the first error of a field that does not fit; an error of the text is in s.
func fillStruct(s *plainjson.Scanner, v reflect.Value, fields map[string]fieldPlan) error {
	if !s.Object() {
		return errFieldKind
	}
	var wrong error
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		plan, known := fields[string(key)]
		if !known {
			s.Skip()
			continue
		}
		if err := plan.set(v.FieldByIndex(plan.index), s); err != nil && wrong == nil {
			wrong = &fieldError{name: string(key), err: err}
		}
	}
	return wrong
}

type fieldPlan struct {
	index []int
	set   setter
}

// A setter consumes the next value and puts it into field. A value that does not fit is an error; null changes nothing.
type setter func(field reflect.Value, s *plainjson.Scanner) error

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

func setterOf(t reflect.Type) setter {
	switch {
	case t == rawMessageType:
		return setRaw // null too: it is what was written
	case reflect.PointerTo(t).Implements(unmarshalerType):
		return setUnmarshaler
	case t.Kind() == reflect.Pointer:
		return setPointer(setterOf(t.Elem()))
	case t.Kind() == reflect.Slice:
		return notNull(plainjson.Array, setSlice(setterOf(t.Elem())))
	case t.Kind() == reflect.String:
		return notNull(plainjson.String, setString)
	case t.Kind() == reflect.Bool:
		return notNull(plainjson.Bool, setBool)
	case t.Kind() == reflect.Int:
		return notNull(plainjson.Number, setInt)
	case t.Kind() == reflect.Struct:
		fields := fieldsOf(t)
		return notNull(plainjson.Object, func(f reflect.Value, s *plainjson.Scanner) error { return fillStruct(s, f, fields) })
	}
	return setAny
}

// notNull calls set for a value of the right kind, leaves the field alone for null, and refuses everything else.
func notNull(kind plainjson.Kind, set setter) setter {
	return func(f reflect.Value, s *plainjson.Scanner) error {
		switch s.Kind() {
		case kind:
			return set(f, s)
		case plainjson.Null:
			s.Skip()
			return nil
		}
		s.Skip()
		return errFieldKind
	}
}

// setPointer points the field to a value; null, and a value that does not fit, leave it nil.
func setPointer(set setter) setter {
	return func(f reflect.Value, s *plainjson.Scanner) error {
		if s.Kind() == plainjson.Null {
			s.Skip()
			return nil
		}
		target := reflect.New(f.Type().Elem())
		err := set(target.Elem(), s)
		if err == nil {
			f.Set(target)
		}
		return err
	}
}

func setRaw(f reflect.Value, s *plainjson.Scanner) error {
	f.SetBytes(s.Raw())
	return nil
}

func setString(f reflect.Value, s *plainjson.Scanner) error {
	text, _, _ := s.Decode(nil)
	f.SetString(string(text))
	return nil
}

func setBool(f reflect.Value, s *plainjson.Scanner) error {
	v, _ := s.Bool()
	f.SetBool(v)
	return nil
}

// setInt accepts a fraction too, cut off: the CLI's numbers are all floating point.
func setInt(f reflect.Value, s *plainjson.Scanner) error {
	n, ok := s.Int()
	if !ok || n > 1<<53 || n < -1<<53 {
		return errFieldKind
	}
	f.SetInt(n)
	return nil
}

func setUnmarshaler(f reflect.Value, s *plainjson.Scanner) error {
	raw := s.Raw()
	if raw == nil {
		return nil // s has the error
	}
	return f.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw)
}

// setSlice fills a slice. An element that does not fit empties it: a list with a hole would have another meaning.
func setSlice(set setter) setter {
	return func(f reflect.Value, s *plainjson.Scanner) error {
		list := reflect.MakeSlice(f.Type(), 0, 4)
		var wrong error
		s.Array()
		for s.Elem() {
			list = reflect.Append(list, reflect.Zero(f.Type().Elem()))
			if err := set(list.Index(list.Len()-1), s); err != nil && wrong == nil {
				wrong = err
			}
		}
		if wrong == nil {
			f.Set(list)
		}
		return wrong
	}
}

func setAny(f reflect.Value, s *plainjson.Scanner) error {
	raw := s.Raw()
	if raw == nil {
		return nil // s has the error
	}
	if err := json.Unmarshal(raw, f.Addr().Interface()); err != nil {
		return fmt.Errorf("%w: %w", errFieldKind, err)
	}
	return nil
}
