// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

var losslessTypes sync.Map // reflect.Type to bool

// lossless reports whether a value of a type comes back from its JSON as it was. A slice of other values
// is not taken from a checkpoint: what its reducers make of the log would be another thing.
func lossless(t reflect.Type) bool {
	if known, ok := losslessTypes.Load(t); ok {
		return known.(bool)
	}
	ok := keepsAll(t, map[reflect.Type]bool{})
	losslessTypes.Store(t, ok)
	return ok
}

func keepsAll(t reflect.Type, above map[reflect.Type]bool) bool {
	if above[t] {
		return true
	}
	above[t] = true
	if t == reflect.TypeFor[json.RawMessage]() {
		return false // one that is nil comes back as null, and white space is lost
	}
	p := reflect.PointerTo(t)
	if p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		// Methods that write and read the JSON of a type are meant to keep it the same.
		return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	switch t.Kind() {
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return false
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return keepsAll(t.Elem(), above)
	case reflect.Map:
		return keepsAll(t.Key(), above) && keepsAll(t.Elem(), above)
	case reflect.Struct:
		return keepsFields(t, above)
	}
	return true
}

func keepsFields(t reflect.Type, above map[reflect.Type]bool) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.IsExported() || f.Anonymous || name == "-" || !keepsAll(f.Type, above) {
			return false
		}
	}
	return true
}
