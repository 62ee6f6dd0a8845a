// SPDX-License-Identifier: Apache-2.0

package schema

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
func rewrite(doc any, place string, change func(o *object, place string) (*object, error)) (any, error) {
	o, ok := doc.(*object)
	if !ok {
		return doc, nil
	}
	out := &object{members: make([]member, len(o.members))}
	for i, m := range o.members {
		v, err := rewriteMember(m, place+"/"+escape(m.name), change)
		if err != nil {
			return nil, err
		}
		out.members[i] = member{m.name, v}
	}
	return change(out, place)
}

func rewriteMember(m member, place string, change func(*object, string) (*object, error)) (any, error) {
	switch v := m.value.(type) {
	case []any:
		if !schemaListKeywords[m.name] {
			return v, nil
		}
		list := make([]any, len(v))
		for i, e := range v {
			var err error
			if list[i], err = rewrite(e, place+"/"+itoa(i), change); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *object:
		if schemaMapKeywords[m.name] {
			return rewriteMap(v, place, change)
		}
		if schemaKeywords[m.name] {
			return rewrite(v, place, change)
		}
	}
	return m.value, nil
}

func rewriteMap(o *object, place string, change func(*object, string) (*object, error)) (*object, error) {
	out := &object{members: make([]member, len(o.members))}
	for i, m := range o.members {
		v, err := rewrite(m.value, place+"/"+escape(m.name), change)
		if err != nil {
			return nil, err
		}
		out.members[i] = member{m.name, v}
	}
	return out, nil
}
