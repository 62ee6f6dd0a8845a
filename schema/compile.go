// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"math"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// A compiler turns an ordered document into nodes. Places are JSON pointers with a leading "#".
type compiler struct {
	nodes map[string]*node // by path, the targets of references
	order []string         // places in the order they were met, for stable errors
	// places and program count what the schema costs so far; see the bounds.
	pathBytes, program int
	// foreign is set for a document whose regular expressions are not Go's.
	foreign bool
}

func (c *compiler) document(doc any) (*node, error) {
	root, err := c.schema(doc, "#")
	if err != nil {
		return nil, err
	}
	if err := c.resolveRefs(); err != nil {
		return nil, err
	}
	return root, c.findCircles()
}

func (c *compiler) schema(v any, path string) (*node, error) {
	n := new(node)
	c.nodes[path] = n
	c.order = append(c.order, path)
	c.pathBytes += len(path)
	switch {
	case len(c.order) > maxSchemas:
		return nil, invalid(path, "there are more than %d schemas in it", maxSchemas)
	case c.pathBytes > maxPathBytes:
		return nil, invalid("#", "its names are too long, or nested too deep, for so many schemas")
	}
	switch v := v.(type) {
	case bool:
		n.refused = !v
		return n, nil
	case *object:
		for _, m := range v.members {
			if err := c.keyword(n, v, m, path); err != nil {
				return nil, err
			}
		}
		return n, nil
	}
	return nil, invalid(path, "a schema is an object, true or false, not %s", typeOf(plain(v)))
}

// keyword compiles one member of a schema. Unknown members are annotations and mean nothing here.
func (c *compiler) keyword(n *node, parent *object, m member, path string) error {
	at := path + "/" + escape(m.name)
	if compileKeyword := keywords[m.name]; compileKeyword != nil {
		return compileKeyword(c, n, parent, m.value, at)
	}
	return nil
}

type keywordFunc func(c *compiler, n *node, parent *object, v any, at string) error

var keywords map[string]keywordFunc

func init() { // a plain initialiser would be a circle: keywords hold schemas
	keywords = map[string]keywordFunc{
		"$schema":     compileDialect,
		"$id":         compileID,
		"$ref":        compileRef,
		"$dynamicRef": unsupported, "$recursiveRef": unsupported, "$vocabulary": unsupported,
		"$defs": compileDefs, "definitions": compileDefs,

		"type": compileType, "enum": compileEnum, "const": compileConst,

		"multipleOf":       number(func(n *node, f *float64) { n.multipleOf = f }),
		"minimum":          number(func(n *node, f *float64) { n.min = f }),
		"maximum":          number(func(n *node, f *float64) { n.max = f }),
		"exclusiveMinimum": number(func(n *node, f *float64) { n.above = f }),
		"exclusiveMaximum": number(func(n *node, f *float64) { n.below = f }),

		"minLength": count(func(n *node, i *int) { n.minLength = i }),
		"maxLength": count(func(n *node, i *int) { n.maxLength = i }),
		"pattern":   compilePattern,

		"minItems":    count(func(n *node, i *int) { n.minItems = i }),
		"maxItems":    count(func(n *node, i *int) { n.maxItems = i }),
		"minContains": count(func(n *node, i *int) { n.minContains = i }),
		"maxContains": count(func(n *node, i *int) { n.maxContains = i }),
		"uniqueItems": compileUnique,
		"prefixItems": list(func(n *node, l []*node) { n.prefix = l }),
		"items":       compileItems, "additionalItems": compileAdditionalItems,
		"contains": single(func(n, sub *node) { n.contains = sub }),

		"minProperties":        count(func(n *node, i *int) { n.minProps = i }),
		"maxProperties":        count(func(n *node, i *int) { n.maxProps = i }),
		"required":             compileRequired,
		"properties":           compileProperties,
		"patternProperties":    compilePatternProperties,
		"additionalProperties": single(func(n, sub *node) { n.additional = sub }),
		"propertyNames":        single(func(n, sub *node) { n.names = sub }),
		"dependentRequired":    compileDependencies, "dependentSchemas": compileDependencies, "dependencies": compileDependencies,

		"allOf": list(func(n *node, l []*node) { n.allOf = l }),
		"anyOf": list(func(n *node, l []*node) { n.anyOf = l }),
		"oneOf": list(func(n *node, l []*node) { n.oneOf = l }),
		"not":   single(func(n, sub *node) { n.not = sub }),
		"if":    single(func(n, sub *node) { n.ifNode = sub }),
		"then":  single(func(n, sub *node) { n.then = sub }),
		"else":  single(func(n, sub *node) { n.orElse = sub }),

		"unevaluatedItems":      single(func(n, sub *node) { n.unevaluatedItems = sub }),
		"unevaluatedProperties": single(func(n, sub *node) { n.unevaluatedProperties = sub }),
		"contentSchema":         single(func(_, _ *node) {}), // describes, never asserts

		"title": describing("string"), "description": describing("string"), "$comment": describing("string"),
		"format": describing("string"), "contentEncoding": describing("string"), "contentMediaType": describing("string"),
		"$anchor": describing("string"), "$dynamicAnchor": describing("string"), "examples": describing("array"),
		"deprecated": describing("boolean"), "readOnly": describing("boolean"), "writeOnly": describing("boolean"),
	}
}

// describing checks the shape of a keyword that asserts nothing: the CLI refuses a wrong one.
func describing(kind string) keywordFunc {
	want, _ := typeByName(kind)
	return func(_ *compiler, _ *node, _ *object, v any, at string) error {
		if typeOf(plain(v))&want == 0 {
			return invalid(at, "must be %s", want)
		}
		return nil
	}
}

func unsupported(_ *compiler, _ *node, _ *object, _ any, at string) error {
	return invalid(at, "this keyword is not supported; use $ref and $defs")
}

var dialects = []string{
	"json-schema.org/draft-06/schema", "json-schema.org/draft-07/schema",
	"json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema",
}

func compileDialect(_ *compiler, _ *node, _ *object, v any, at string) error {
	s, _ := v.(string)
	_, rest, _ := strings.Cut(strings.TrimSuffix(s, "#"), "://")
	if !slices.Contains(dialects, rest) {
		return invalid(at, "unknown dialect %q; use draft-07 or 2020-12", s)
	}
	return nil
}

// compileID refuses an id below the root: it would change what "#/..." means there.
func compileID(_ *compiler, _ *node, _ *object, v any, at string) error {
	if _, ok := v.(string); !ok {
		return invalid(at, "must be a string")
	}
	if at != "#/$id" {
		return invalid(at, "an id is allowed only at the root of the schema; use $defs and \"#/$defs/name\"")
	}
	return nil
}

func compileRef(_ *compiler, n *node, _ *object, v any, at string) error {
	s, ok := v.(string)
	if !ok {
		return invalid(at, "must be a string")
	}
	if s != "#" && !strings.HasPrefix(s, "#/") {
		return invalid(at, "reference %q leaves the schema; copy its target into $defs and refer to \"#/$defs/name\"", s)
	}
	target, err := url.PathUnescape(s)
	if err != nil {
		return invalid(at, "reference %q is not a valid URI: %v", s, err)
	}
	n.refTarget = target
	return nil
}

func compileDefs(c *compiler, _ *node, _ *object, v any, at string) error {
	_, err := c.named(v, at)
	return err
}

func (c *compiler) named(v any, at string) (map[string]*node, error) {
	o, ok := v.(*object)
	if !ok {
		return nil, invalid(at, "must be an object of schemas")
	}
	subs := make(map[string]*node, len(o.members))
	for _, m := range o.members {
		sub, err := c.schema(m.value, at+"/"+escape(m.name))
		if err != nil {
			return nil, err
		}
		subs[m.name] = sub
	}
	return subs, nil
}

func single(set func(n, sub *node)) keywordFunc {
	return func(c *compiler, n *node, _ *object, v any, at string) error {
		sub, err := c.schema(v, at)
		if err == nil {
			set(n, sub)
		}
		return err
	}
}

func list(set func(n *node, subs []*node)) keywordFunc {
	return func(c *compiler, n *node, _ *object, v any, at string) error {
		elems, ok := v.([]any)
		if !ok || len(elems) == 0 {
			return invalid(at, "must be a list of at least one schema")
		}
		subs := make([]*node, len(elems))
		for i, e := range elems {
			sub, err := c.schema(e, at+"/"+strconv.Itoa(i))
			if err != nil {
				return err
			}
			subs[i] = sub
		}
		set(n, subs)
		return nil
	}
}

func number(set func(n *node, f *float64)) keywordFunc {
	return func(_ *compiler, n *node, _ *object, v any, at string) error {
		f, ok := toFloat(v)
		if !ok {
			return invalid(at, "must be a number within the range of a double")
		}
		if strings.HasSuffix(at, "/multipleOf") && f <= 0 {
			return invalid(at, "must be above zero")
		}
		set(n, &f)
		return nil
	}
}

func count(set func(n *node, i *int)) keywordFunc {
	return func(_ *compiler, n *node, _ *object, v any, at string) error {
		f, ok := toFloat(v)
		if !ok || f < 0 || f != math.Trunc(f) || f > math.MaxInt32 {
			return invalid(at, "must be a whole number from 0 to %d", math.MaxInt32)
		}
		i := int(f)
		set(n, &i)
		return nil
	}
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	case int:
		return float64(v), true
	}
	return 0, false
}

func (c *compiler) regexp(pattern, at string) (*regexp.Regexp, error) {
	if c.foreign {
		return nil, nil
	}
	if len(pattern) > maxPattern {
		return nil, invalid(at, "the regular expression is longer than %d bytes", maxPattern)
	}
	if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		if c.program += programSize(parsed); c.program > maxProgram {
			return nil, invalid(at, "the regular expressions are too large; write fewer, or with smaller repetitions")
		}
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, invalid(at, "%v; patterns use Go's syntax, which has no look-around and no back-references", err)
	}
	return re, nil
}

// programSize is how much a regular expression grows when it is compiled: x{1000} is written out.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		size += programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return size
}

func escape(segment string) string {
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~", "~0"), "/", "~1")
}

func (c *compiler) resolveRefs() error {
	for _, path := range c.order {
		n := c.nodes[path]
		if n.refTarget == "" {
			continue
		}
		if n.ref = c.nodes[n.refTarget]; n.ref == nil {
			return invalid(path+"/$ref", "no schema at %q", n.refTarget)
		}
	}
	return nil
}

// findCircles refuses schemas that lead back to themselves without going into the value: checking would never end.
func (c *compiler) findCircles() error {
	const (
		open = 1
		done = 2
	)
	state := map[*node]int{}
	var visit func(n *node) bool
	visit = func(n *node) bool {
		if n == nil || state[n] == done {
			return true
		}
		if state[n] == open {
			return false
		}
		state[n] = open
		for _, sub := range n.inPlace() {
			if !visit(sub) {
				return false
			}
		}
		state[n] = done
		return true
	}
	for _, path := range c.order {
		if !visit(c.nodes[path]) {
			return invalid(path, "its references form a circle that never looks at a property or an item")
		}
	}
	return nil
}
