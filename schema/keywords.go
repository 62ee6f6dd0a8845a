// SPDX-License-Identifier: Apache-2.0

package schema

import "strconv"

func compileType(_ *compiler, n *node, _ *object, v any, at string) error {
	names, ok := v.([]any)
	if !ok {
		names = []any{v}
	}
	if len(names) == 0 {
		return invalid(at, "must name at least one type")
	}
	for _, e := range names {
		name, _ := e.(string)
		bit, ok := typeByName(name)
		if !ok {
			return invalid(at, "unknown type %s; use null, boolean, object, array, string, number or integer", appendJSON(nil, e))
		}
		if n.types&bit != 0 {
			return invalid(at, "type %q is listed twice", name)
		}
		n.types |= bit
	}
	return nil
}

func compileEnum(_ *compiler, n *node, _ *object, v any, at string) error {
	values, ok := v.([]any)
	if !ok || len(values) == 0 {
		return invalid(at, "must be a list of at least one value")
	}
	n.enum = plain(values).([]any)
	if twice, ok := repeated(n.enum); ok {
		return invalid(at, "value %d is listed twice", twice)
	}
	return nil
}

func compileConst(_ *compiler, n *node, _ *object, v any, _ string) error {
	n.hasConst, n.constant = true, plain(v)
	return nil
}

func compilePattern(c *compiler, n *node, _ *object, v any, at string) error {
	s, ok := v.(string)
	if !ok {
		return invalid(at, "must be a string")
	}
	re, err := c.regexp(s, at)
	n.pattern = re
	return err
}

func compileUnique(_ *compiler, n *node, _ *object, v any, at string) error {
	b, ok := v.(bool)
	if !ok {
		return invalid(at, "must be true or false")
	}
	n.unique = b
	return nil
}

// compileItems understands both meanings of a list in "items": before 2020-12 it was the tuple.
func compileItems(c *compiler, n *node, _ *object, v any, at string) error {
	if elems, ok := v.([]any); ok && len(elems) == 0 {
		return nil // a tuple of nothing asserts nothing
	} else if ok {
		return list(func(n *node, l []*node) { n.prefix = l })(c, n, nil, v, at)
	}
	return single(func(n, sub *node) { n.items = sub })(c, n, nil, v, at)
}

// compileAdditionalItems applies after a tuple only, as draft-07 says.
func compileAdditionalItems(c *compiler, n *node, parent *object, v any, at string) error {
	sub, err := c.schema(v, at)
	if err != nil {
		return err
	}
	items, _ := parent.get("items")
	if _, tuple := items.([]any); tuple {
		n.items = sub
	}
	return nil
}

func compileRequired(_ *compiler, n *node, _ *object, v any, at string) error {
	names, err := stringList(v, at)
	n.required = names
	return err
}

func stringList(v any, at string) ([]string, error) {
	elems, ok := v.([]any)
	if !ok {
		return nil, invalid(at, "must be a list of property names")
	}
	seen := map[string]bool{}
	names := make([]string, 0, len(elems))
	for i, e := range elems {
		s, ok := e.(string)
		if !ok {
			return nil, invalid(at+"/"+strconv.Itoa(i), "must be a string")
		}
		if seen[s] {
			return nil, invalid(at, "property %q is listed twice", s)
		}
		seen[s] = true
		names = append(names, s)
	}
	return names, nil
}

func compileProperties(c *compiler, n *node, _ *object, v any, at string) error {
	subs, err := c.named(v, at)
	n.properties = subs
	return err
}

func compilePatternProperties(c *compiler, n *node, _ *object, v any, at string) error {
	subs, err := c.named(v, at)
	if err != nil {
		return err
	}
	if n := len(v.(*object).members); n > maxPatterns {
		return invalid(at, "it has %d patterns, and may have %d", n, maxPatterns)
	}
	for _, m := range v.(*object).members {
		re, err := c.regexp(m.name, at)
		if err != nil {
			return err
		}
		n.patterns = append(n.patterns, patternRule{re, subs[m.name]})
	}
	return nil
}

// compileDependencies serves the three keywords at once: a list names properties, anything else is a schema.
func compileDependencies(c *compiler, n *node, _ *object, v any, at string) error {
	o, ok := v.(*object)
	if !ok {
		return invalid(at, "must be an object")
	}
	for _, m := range o.members {
		d := dependency{property: m.name}
		path := at + "/" + escape(m.name)
		var err error
		if _, names := m.value.([]any); names {
			d.required, err = stringList(m.value, path)
		} else {
			d.node, err = c.schema(m.value, path)
		}
		if err != nil {
			return err
		}
		n.needs = append(n.needs, d)
	}
	return nil
}
