// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"reflect"
	"strings"
)

// A jsonField is a struct field as encoding/json sees it.
type jsonField struct {
	name     string // in JSON
	goName   string
	doc      string
	typ      reflect.Type
	optional bool // pointer, omitempty or omitzero
	quoted   bool // the ",string" option
	tagged   bool // the name comes from a tag
	depth    int  // of embedding
}

// jsonFields lists the fields of struct t in order. Where embedding brings several fields to one
// name, the shallowest wins, then the tagged one; a tie drops them all, as in encoding/json.
func jsonFields(t reflect.Type) []jsonField {
	var all []jsonField
	collectFields(t, 0, map[reflect.Type]bool{}, &all)
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

func collectFields(t reflect.Type, depth int, open map[reflect.Type]bool, all *[]jsonField) {
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
		if embedded := embeddedStruct(sf); embedded != nil && name == "" {
			collectFields(embedded, depth+1, open, all)
			continue
		}
		if !sf.IsExported() {
			continue
		}
		*all = append(*all, newField(sf, name, options, depth))
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

func newField(sf reflect.StructField, name, options string, depth int) jsonField {
	f := jsonField{name: name, goName: sf.Name, doc: sf.Tag.Get("doc"), typ: sf.Type, tagged: name != "", depth: depth}
	if name == "" {
		f.name = sf.Name
	}
	f.optional = sf.Type.Kind() == reflect.Pointer
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			f.optional = true
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
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.Interface:
		return false
	}
	return true
}
