// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-agents/drover/tool"
)

// A binding is a template with values. The texts are filled in once, here: rendering only chooses and joins them.
type binding struct {
	t      *template
	values map[reflect.Type]*boundValue
	faces  []face // as template.nodes
	// err is set if values are missing: the prompt cannot be rendered.
	err error
}

// A face is what a section shows, with its values filled in.
type face struct {
	full    string // heading, text and examples
	summary string // heading and summary; empty without a summary
	tools   []*tool.Tool
	// visibility is that of an override, or nil.
	visibility *Visibility
	// overridden reports by visibility whether an override changed the text, and overriddenTools whether one changed a tool.
	overridden      [Summary + 1]bool
	overriddenTools []bool
}

// A binder collects what is wrong while values are bound.
type binder struct {
	problems
	*binding
	missing map[reflect.Type]bool
	used    map[reflect.Type]bool // by sections that declare nothing
	filled  map[filler]string     // texts that were made already
	size    int                   // of all texts with their values
}

// maxText bounds the texts of a prompt with their values: more than the context of a model holds. Without it a
// short text that names a long value many times would fill the memory.
const maxText = 4 << 20

type filler struct {
	value *boundValue
	name  string
}

// unbound returns a binding without values. It can be rendered if the template declares no params.
func (t *template) unbound() *binding {
	b, err := t.bind(nil, nil)
	if err != nil {
		return &binding{t: t, err: err}
	}
	return b
}

func (t *template) bind(old map[reflect.Type]*boundValue, params []any) (*binding, error) {
	b := &binder{
		problems: problems{prompt: t.name, err: ErrParams},
		binding:  &binding{t: t, values: maps.Clone(old)},
		missing:  map[reflect.Type]bool{}, used: map[reflect.Type]bool{}, filled: map[filler]string{},
	}
	if b.values == nil {
		b.values = map[reflect.Type]*boundValue{}
	}
	b.take(params)
	b.findMissing()
	for _, n := range t.nodes {
		b.faces = append(b.faces, b.face(n))
	}
	b.findUnknown()
	if err := b.join(); err != nil {
		return nil, err
	}
	return b.binding, nil
}

func (b *binder) take(params []any) {
	given := map[reflect.Type]bool{}
	for _, p := range params {
		value, err := newBoundValue(p)
		if err != nil {
			b.add(Error{Reason: err.Error()})
			continue
		}
		if given[value.typ] {
			b.add(Error{Reason: fmt.Sprintf("two values of %v are given; it is for %s", value.typ, b.t.wanting(value.typ))})
		}
		given[value.typ] = true
		b.values[value.typ] = value
	}
}

// findMissing names each declared type without a value once, with all sections that declare it.
func (b *binder) findMissing() {
	check := func(declared []declaration) {
		for _, d := range declared {
			if d.fallback != nil || b.values[d.typ] != nil || b.missing[d.typ] {
				continue
			}
			b.missing[d.typ] = true
			b.add(Error{Reason: fmt.Sprintf("no value of %v is bound; it is for %s", d.typ, b.t.declaring(func(at declaration) bool { return at.typ == d.typ && at.fallback == nil })), Next: fmt.Sprintf("Bind(%v{...})", d.typ)})
		}
	}
	check(b.t.outermost)
	for _, n := range b.t.nodes {
		check(n.Params.declared)
	}
}

func (t *template) wanting(typ reflect.Type) string {
	return t.declaring(func(d declaration) bool { return d.typ == typ })
}

func (t *template) declaring(is func(declaration) bool) string {
	has := func(declared []declaration) bool { return slices.ContainsFunc(declared, is) }
	if has(t.outermost) {
		return "the whole prompt"
	}
	var paths []string
	for _, n := range t.nodes {
		if has(n.Params.declared) {
			paths = append(paths, fmt.Sprintf("section %q", n.path))
		}
	}
	if paths == nil {
		return "no section in particular"
	}
	return strings.Join(paths, ", ")
}

func (b *binder) findUnknown() {
	for _, typ := range sortedTypes(b.values) {
		if !b.used[typ] && b.t.wanting(typ) == "no section in particular" {
			b.add(Error{
				Reason: fmt.Sprintf("no section asks for a %v (sections: %s)", typ, strings.Join(b.t.paths(), ", ")),
				Next:   "leave it out, or declare it with ParamsOf where a predicate reads it",
			})
		}
	}
}

func (b *binder) face(n *node) face {
	f := face{tools: n.Tools}
	f.full = joinParts(n.heading, b.fill(n, "text", n.Text, n.body), renderExamples(n.Examples))
	if n.summary.source != "" {
		f.summary = joinParts(n.heading, b.fill(n, "summary", n.Summary, n.summary))
	}
	return f
}

func joinParts(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "\n\n")
}

// fill puts the values into a text. Errors have positions in the text as it was written.
func (b *binder) fill(n *node, part, written string, t text) string {
	var out strings.Builder
	out.Grow(2 * len(t.source))
	for _, s := range t.segments {
		if b.size > maxText {
			return ""
		}
		value, err := s.text, error(nil)
		if s.name != "" {
			value, err = b.lookup(n.scope, s)
		}
		if err != nil && !b.full() {
			line, column := placeholderPosition(written, s.name)
			b.add(Error{Section: n.path, Part: part, Line: line, Column: column, Reason: "placeholder $" + s.name, Cause: err})
		}
		if b.size += len(value); b.size > maxText {
			b.add(Error{Section: n.path, Part: part, Reason: fmt.Sprintf("the texts of the prompt have more than %d bytes with their values", maxText), Next: "give shorter values, or put long texts into files"})
			return ""
		}
		out.WriteString(value)
	}
	return out.String()
}

func placeholderPosition(written, name string) (line, column int) {
	segments, _ := scan(written)
	for _, s := range segments {
		if s.name == name {
			return position(written, s.offset)
		}
	}
	return 0, 0
}

// lookup finds the text for a placeholder. A value that is missing was reported already.
func (b *binder) lookup(in scope, s segment) (string, error) {
	owner := s.owner
	if owner == nil {
		var err error
		if owner, err = b.owner(s.name); err != nil {
			return "", err
		}
	}
	value := in.value(owner, b.values)
	if value == nil {
		return "", nil
	}
	key := filler{value, s.name}
	if text, ok := b.filled[key]; ok {
		return text, nil
	}
	text, err := value.text(s.name)
	if err == nil && b.filled != nil {
		b.filled[key] = text
	}
	return text, err
}

// owner finds the bound struct for a placeholder where none is declared.
func (b *binder) owner(name string) (reflect.Type, error) {
	types := b.having(name)
	switch {
	case len(b.values) == 0:
		return nil, errors.New("has no value: nothing is bound")
	case len(types) == 0:
		return nil, errors.New("has no value: none of the params has it")
	case len(types) > 1:
		return nil, fmt.Errorf("is ambiguous: %v and %v have it", types[0], types[1])
	}
	return types[0], nil
}

// having lists the bound types with a field for a placeholder, and notes that they are of use.
func (b *binder) having(name string) []reflect.Type {
	var types []reflect.Type
	for _, typ := range sortedTypes(b.values) {
		if _, ok := fieldsOf(typ).byName[name]; ok {
			types = append(types, typ)
			b.used[typ] = true
		}
	}
	return types
}

// sortedTypes puts types into an order, so that errors are always the same.
func sortedTypes(values map[reflect.Type]*boundValue) []reflect.Type {
	return slices.SortedFunc(maps.Keys(values), func(x, y reflect.Type) int { return strings.Compare(x.String(), y.String()) })
}
