// SPDX-License-Identifier: Apache-2.0

package schema

import "strconv"

// Where schemas stand inside a schema, by keyword.
var (
	schemaKeywords = set("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items",
		"not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties")
	schemaListKeywords = set("allOf", "anyOf", "items", "oneOf", "prefixItems")
	schemaMapKeywords  = set("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// eachSchema rebuilds doc with change applied to every schema in it, the inner ones first. Values
// that only look like schemas (enum, const, default, examples, names of properties) are left alone.
func eachSchema(doc any, change func(*object) *object) any {
	out, _ := rewrite(doc, "#", func(o *object, _ string) (*object, error) { return change(o), nil })
	return out
}

// rewrite is eachSchema with places and errors.
func rewrite(doc any, path string, change func(o *object, path string) (*object, error)) (any, error) {
	o, ok := doc.(*object)
	if !ok {
		return doc, nil
	}
	out, err := rewriteMembers(o, path, func(m member, at string) (any, error) { return rewriteMember(m, at, change) })
	if err != nil {
		return nil, err
	}
	return change(out, path)
}

func rewriteMember(m member, path string, change func(*object, string) (*object, error)) (any, error) {
	switch v := m.value.(type) {
	case []any:
		if !schemaListKeywords[m.name] {
			return v, nil
		}
		list := make([]any, len(v))
		for i, e := range v {
			var err error
			if list[i], err = rewrite(e, path+"/"+strconv.Itoa(i), change); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *object:
		if schemaMapKeywords[m.name] {
			return rewriteMembers(v, path, func(m member, at string) (any, error) { return rewrite(m.value, at, change) })
		}
		if schemaKeywords[m.name] {
			return rewrite(v, path, change)
		}
	}
	return m.value, nil
}

func rewriteMembers(o *object, path string, value func(m member, at string) (any, error)) (*object, error) {
	out := &object{members: make([]member, len(o.members))}
	for i, m := range o.members {
		v, err := value(m, path+"/"+escape(m.name))
		if err != nil {
			return nil, err
		}
		out.members[i] = member{m.name, v}
	}
	return out, nil
}
