// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

type paramField struct {
	goName string // "main.Args.Path"
	index  []int  // as for reflect.Value.FieldByIndex
	typ    reflect.Type
	// unusable is the reason why a field of this type has no text, or empty.
	unusable string
}

type paramFields struct {
	names    []string // in the order of the fields
	byName   map[string]paramField
	problems []string
}

var fieldsByType sync.Map // reflect.Type -> *paramFields

func fieldsOf(t reflect.Type) *paramFields {
	if got, ok := fieldsByType.Load(t); ok {
		return got.(*paramFields)
	}
	got, _ := fieldsByType.LoadOrStore(t, newParamFields(t))
	return got.(*paramFields)
}

// newParamFields collects the exported fields. Those of embedded structs count as the struct's own;
// where two have one name, the one that is less deep wins, as in Go.
func newParamFields(t reflect.Type) *paramFields {
	all := &paramFields{byName: map[string]paramField{}}
	if t.Kind() != reflect.Struct {
		return all
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, ok := paramName(f); ok {
			all.add(name, paramField{t.String() + "." + f.Name, f.Index, f.Type, unusableReason(f.Type)})
		}
	}
	return all
}

func (a *paramFields) add(name string, f paramField) {
	old, taken := a.byName[name]
	switch {
	case identifier(name) != len(name):
		a.problems = append(a.problems, fmt.Sprintf("field %s: %q cannot be a placeholder; tag it `prompt:\"name\"`, or `prompt:\"-\"` to leave it out", f.goName, name))
	case !taken:
		a.byName[name] = f
		a.names = append(a.names, name)
	case len(old.index) == len(f.index):
		a.problems = append(a.problems, fmt.Sprintf("fields %s and %s are both called %q", old.goName, f.goName, name))
	case len(f.index) < len(old.index):
		a.byName[name] = f
	}
}

// paramName applies the rule for names: the prompt tag, else the name in the json tag, else the name
// of the field. An embedded struct without a prompt tag has no name: its fields have.
func paramName(f reflect.StructField) (string, bool) {
	if tag, ok := f.Tag.Lookup("prompt"); ok {
		return tag, f.IsExported() && tag != "-" && tag != ""
	}
	if !f.IsExported() || f.Anonymous && structType(f.Type).Kind() == reflect.Struct {
		return "", false
	}
	tag := f.Tag.Get("json")
	name, _, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-":
		return "", false
	case name != "" && identifier(name) == len(name):
		return name, true
	}
	return f.Name, identifier(f.Name) == len(f.Name)
}

var (
	stringerType = reflect.TypeFor[fmt.Stringer]()
	timeType     = reflect.TypeFor[time.Time]()
)

func unusableReason(t reflect.Type) string {
	kinds := []reflect.Kind{reflect.String, reflect.Bool, reflect.Float32, reflect.Float64}
	if t.Implements(stringerType) || slices.Contains(kinds, t.Kind()) || t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
		return ""
	}
	return fmt.Sprintf("%v is not a string, number, bool, time or fmt.Stringer", t)
}

type boundValue struct {
	typ   reflect.Type
	value any // a struct, not a pointer
	v     reflect.Value
}

func newBoundValue(p any) (*boundValue, error) {
	v := reflect.ValueOf(p)
	if !v.IsValid() {
		return nil, errors.New("nil is not a params struct")
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, fmt.Errorf("a nil %v has no values", v.Type())
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil, fmt.Errorf("params must be structs, %v is not a struct", v.Type())
	}
	value := v.Interface() // a copy: the caller may change its own
	return &boundValue{v.Type(), value, reflect.ValueOf(value)}, nil
}

func (b *boundValue) text(name string) (string, error) {
	f := fieldsOf(b.typ).byName[name]
	if f.unusable != "" {
		return "", fmt.Errorf("field %s: %s", f.goName, f.unusable)
	}
	v, err := b.v.FieldByIndexErr(f.index)
	if err != nil {
		return "", fmt.Errorf("field %s: an embedded pointer on the way to it is nil", f.goName)
	}
	text, err := formatValue(v)
	if err != nil {
		return "", fmt.Errorf("field %s: %w", f.goName, err)
	}
	return text, nil
}

// formatValue writes a value as people do. A String method that panics, as many do for nil, is an error.
func formatValue(v reflect.Value) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its String method panicked: %v", r)
		}
	}()
	switch {
	case v.Type() == timeType:
		return v.Interface().(time.Time).Format(time.RFC3339Nano), nil
	case v.Kind() == reflect.Interface && v.IsNil():
		return "", errors.New("it is nil")
	case v.Type().Implements(stringerType):
		return v.Interface().(fmt.Stringer).String(), nil
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	return formatFloat(v.Float(), v.Type().Bits()), nil
}

// formatFloat has exponents only where a plain number would be hard to read.
func formatFloat(f float64, bits int) string {
	if size := math.Abs(f); f == 0 || size >= 1e-6 && size < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, bits)
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}
