// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"reflect"
	"strings"
	"unicode"
)

// A jsonField is a struct field as encoding/json sees it.
type jsonField struct {
	name   string // in JSON
	goName string
	tag    reflect.StructTag
	typ    reflect.Type
	omits  bool // omitempty or omitzero
	quoted bool // the ",string" option
	tagged bool // the name comes from a tag
	depth  int  // of embedding
	// pointer says that it is reached through an embedded pointer: a nil one leaves it out.
	pointer bool
	// unreachable says that such a pointer is to an unexported struct, which nothing can set.
	unreachable bool
}

// An embedding is the way from the struct to one that is embedded in it.
type embedding struct {
	depth                int
	pointer, unreachable bool
}

func (e embedding) into(sf reflect.StructField) embedding {
	e.depth++
	if sf.Type.Kind() == reflect.Pointer {
		e.pointer = true
		e.unreachable = e.unreachable || !sf.IsExported()
	}
	return e
}

// jsonFields lists the fields of struct t in order. Where embedding brings several fields to one
// name, the shallowest wins, then the tagged one; a tie drops them all, as in encoding/json.
func jsonFields(t reflect.Type) []jsonField {
	var all []jsonField
	collectFields(t, embedding{}, map[reflect.Type]bool{}, &all)
	var out []jsonField
	for i, f := range all {
		if dominant(all, i) {
			out = append(out, f)
		}
	}
	return out
}

func dominant(all []jsonField, i int) bool {
	f := all[i]
	for j, g := range all {
		if j == i || g.name != f.name {
			continue
		}
		if g.depth < f.depth || g.depth == f.depth && (g.tagged || !f.tagged) {
			return false
		}
	}
	return true
}

func collectFields(t reflect.Type, way embedding, open map[reflect.Type]bool, all *[]jsonField) {
	if open[t] {
		return // a struct that embeds itself by pointer
	}
	open[t] = true
	defer delete(open, t)
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !validName(name) {
			name = ""
		}
		if embedded := embeddedStruct(sf); embedded != nil && name == "" {
			collectFields(embedded, way.into(sf), open, all)
			continue
		}
		if !sf.IsExported() && embeddedStruct(sf) == nil {
			continue
		}
		*all = append(*all, newField(sf, name, options, way))
	}
}

func embeddedStruct(sf reflect.StructField) reflect.Type {
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if sf.Anonymous && t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

func newField(sf reflect.StructField, name, options string, way embedding) jsonField {
	f := jsonField{
		name: name, goName: sf.Name, tag: sf.Tag, typ: sf.Type, tagged: name != "",
		depth: way.depth, pointer: way.pointer,
		unreachable: way.unreachable || !sf.IsExported() && sf.Type.Kind() == reflect.Pointer,
	}
	if name == "" {
		f.name = sf.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			f.omits = true
		case "string":
			f.quoted = quotable(sf.Type)
		}
	}
	return f
}

// quotable reports whether encoding/json honours ",string" for t.
func quotable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Float64 || t.Kind() == reflect.String
}

// validName reports whether encoding/json takes the name from a tag; it ignores others.
func validName(name string) bool {
	for _, c := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return true
}
