// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"slices"
	"strings"
)

// collapseNullable writes "this or null" as one schema of two types, as models read it best. What it accepts
// is the same. Where a reference leads into alternatives nothing is changed.
func collapseNullable(root *object) *object {
	into := false
	eachSchema(root, func(o *object) *object {
		ref, _ := o.get("$ref")
		text, _ := ref.(string)
		into = into || strings.Contains(text, "/anyOf/") || strings.Contains(text, "/oneOf/")
		return o
	})
	if into {
		return root
	}
	return eachSchema(root, collapse).(*object)
}

// annotations may stand beside the alternatives: they assert nothing.
var annotations = set("$comment", "$defs", "default", "definitions", "deprecated", "description", "examples", "readOnly", "title", "writeOnly")

// forAllTypes are assertions that null would have to meet too.
var forAllTypes = []string{"$ref", "allOf", "anyOf", "const", "else", "enum", "if", "not", "oneOf", "then"}

func collapse(o *object) *object {
	out := new(object)
	var inner *object
	for _, m := range o.members {
		switch value := orNullOf(m); {
		case value != nil && inner == nil:
			inner = value
		case annotations[m.name]:
			out.set(m.name, m.value)
		default:
			return o
		}
	}
	if inner == nil {
		return o
	}
	for _, m := range inner.members {
		if m.name == "type" {
			out.set(m.name, []any{m.value, "null"})
		} else if !out.has(m.name) {
			out.set(m.name, m.value)
		}
	}
	return out
}

// orNullOf is the schema beside null in alternatives of two, if it has one type and no assertion that null could not meet.
func orNullOf(m member) *object {
	list, _ := m.value.([]any)
	if m.name != "anyOf" && m.name != "oneOf" || len(list) != 2 {
		return nil
	}
	for i, other := range list {
		if !isNull(other) {
			continue
		}
		inner, ok := list[1-i].(*object)
		if !ok || slices.ContainsFunc(forAllTypes, inner.has) {
			return nil
		}
		if t, _ := inner.get("type"); t == "null" {
			return nil
		} else if _, one := t.(string); one {
			return inner
		}
	}
	return nil
}

func isNull(schema any) bool {
	o, ok := schema.(*object)
	if !ok || len(o.members) != 1 {
		return false
	}
	t, _ := o.get("type")
	return t == "null"
}
