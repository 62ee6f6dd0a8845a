// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"reflect"
	"slices"
)

// Params declares the structs that fill the placeholders of a section or of a whole prompt. Make one with
// [ParamsOf] or [Defaults]; the zero value declares none.
type Params struct {
	declared []declaration
}

type declaration struct {
	typ      reflect.Type
	fallback *boundValue // nil where a value must be bound
	problem  error       // why it cannot be declared
}

// ParamsOf declares a struct type. A value of it must be bound.
func ParamsOf[P any]() Params {
	return Params{[]declaration{{typ: structType(reflect.TypeFor[P]())}}}
}

// Defaults declares a struct type whose value is p unless another is bound.
func Defaults[P any](p P) Params {
	value, err := newBoundValue(p)
	if err != nil {
		return Params{[]declaration{{typ: structType(reflect.TypeFor[P]()), problem: err}}} // reported when the template is made
	}
	return Params{[]declaration{{typ: value.typ, fallback: value}}}
}

// And declares the structs of both.
func (p Params) And(more Params) Params {
	return Params{slices.Concat(p.declared, more.declared)}
}

func structType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func (p Params) check() []string {
	var bad []string
	for i, d := range p.declared {
		if d.problem != nil {
			bad = append(bad, d.problem.Error())
			continue
		}
		if d.typ.Kind() != reflect.Struct {
			bad = append(bad, fmt.Sprintf("params must be structs, %v is not a struct", d.typ))
			continue
		}
		if slices.ContainsFunc(p.declared[:i], func(e declaration) bool { return e.typ == d.typ }) {
			bad = append(bad, fmt.Sprintf("params %v are declared twice", d.typ))
		}
		bad = append(bad, fieldsOf(d.typ).problems...)
	}
	return bad
}

// A scope is what a section can see: its own declarations, those above it, those of the definition; each type once.
type scope []declaration

func (s scope) inside(p Params) scope {
	if len(p.declared) == 0 {
		return s
	}
	inner := scope(slices.Clone(p.declared))
	for _, d := range s {
		if !slices.ContainsFunc(inner, func(e declaration) bool { return e.typ == d.typ }) {
			inner = append(inner, d)
		}
	}
	return inner
}

// value is what a section has for a type: what was bound, else the nearest default.
func (s scope) value(typ reflect.Type, bound map[reflect.Type]*boundValue) *boundValue {
	if v := bound[typ]; v != nil {
		return v
	}
	for _, d := range s {
		if d.typ == typ {
			return d.fallback
		}
	}
	return nil
}

// having lists the types of the scope that have a field for a placeholder.
func (s scope) having(name string) []reflect.Type {
	var types []reflect.Type
	for _, d := range s {
		if _, ok := fieldsOf(d.typ).byName[name]; ok {
			types = append(types, d.typ)
		}
	}
	return types
}

// names lists the valid placeholders, in the order of the declarations.
func (s scope) names() []string {
	var names []string
	for _, d := range s {
		names = append(names, fieldsOf(d.typ).names...)
	}
	return names
}
