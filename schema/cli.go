// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// wrapName is the one property of the object that [ForCLI] puts around other roots.
const wrapName = "value"

// ForCLI rewrites s into what the CLI's structured output takes: draft-07, no dialect, no keyword that the dialect does not
// know, and an object at the root without anyOf, oneOf, allOf or $ref beside it. A root of any other kind is wrapped into an
// object with the one property "value"; [Decode] and [Unwrap] take that off again. Alternatives of one type and null become
// one schema of two types.
//
// Annotations the CLI does not know are dropped. Newer spellings of an assertion are translated
// (prefixItems, dependentRequired, dependentSchemas, Go's regular expressions); an assertion that
// has no older spelling is an error, a [*LocationError] that wraps [ErrNotForCLI].
func ForCLI(s *Schema) (normalized json.RawMessage, wrapped bool, err error) {
	form := s.cliForm()
	return form.text, form.wrapped, form.err
}

type cliForm struct {
	text    json.RawMessage
	wrapped bool
	err     error
}

func newCLIForm(s *Schema) cliForm {
	doc, wrapped, err := normalize(s)
	if err != nil {
		return cliForm{err: err}
	}
	return cliForm{text: appendJSON(nil, doc), wrapped: wrapped}
}

func normalize(s *Schema) (doc *object, wrapped bool, err error) {
	if s.root.refused {
		return nil, false, notForCLI("#", "it accepts no value at all")
	}
	downgraded, err := rewrite(s.doc, "#", downgrade)
	if err != nil {
		return nil, false, err
	}
	root, ok := downgraded.(*object)
	if !ok {
		root = new(object) // the schema "true"
	}
	root = collapseNullable(root)
	if wrapped = needsWrapping(root); wrapped {
		root = wrap(root)
	} else if !root.has("type") {
		root.members = append([]member{{"type", "object"}}, root.members...)
	}
	return root, wrapped, checkTargets(root)
}

// checkTargets finds references whose target went somewhere else in the older spelling.
func checkTargets(root *object) error {
	c := &compiler{nodes: map[string]*node{}, foreign: true}
	_, err := c.document(root)
	var at *LocationError
	if errors.As(err, &at) {
		return notForCLI(at.Location, "%s in draft-07; put the target into $defs and refer to it there", at.Reason)
	}
	return err
}

// needsWrapping reports whether root is anything but a plain object. The alternatives at the top
// level are refused by the model's API, and the input of a tool is always an object.
func needsWrapping(root *object) bool {
	if slices.ContainsFunc([]string{"$ref", "anyOf", "oneOf", "allOf", "enum", "const"}, root.has) {
		return true
	}
	if t, ok := root.get("type"); ok {
		return t != "object"
	}
	return !root.has("properties") && !root.has("required")
}

func wrap(root *object) *object {
	moved := eachSchema(root, func(o *object) *object {
		if ref, ok := o.get("$ref"); ok {
			o.set("$ref", "#/properties/"+wrapName+strings.TrimPrefix(ref.(string), "#"))
		}
		return o
	})
	return newObject(
		"type", "object",
		"properties", newObject(wrapName, moved),
		"required", []any{wrapName},
		"additionalProperties", false,
	)
}

// Unwrap takes the value out of the object that [ForCLI] put around it. Anything but an object with
// the one property "value" is given back as it is.
func Unwrap(raw json.RawMessage) json.RawMessage {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil || len(o) != 1 || o[wrapName] == nil {
		return raw
	}
	return o[wrapName]
}

func (s *Schema) unwrap(raw json.RawMessage) json.RawMessage {
	if s.cliForm().wrapped {
		return Unwrap(raw)
	}
	return raw
}

// cliKeywords are those that the CLI's validator knows. The $id of a root is left out: nothing can refer to it here.
var cliKeywords = set("$comment", "$defs", "$ref", "additionalItems", "additionalProperties", "allOf", "anyOf", "const",
	"contains", "contentEncoding", "contentMediaType", "contentSchema", "default", "definitions", "dependencies", "deprecated",
	"description", "else", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "if", "items", "maxItems",
	"maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf",
	"pattern", "patternProperties", "properties", "propertyNames", "readOnly", "required", "then", "title", "type",
	"uniqueItems", "writeOnly")

// downgrade brings one schema to the CLI's dialect; the schemas inside it have been done already.
func downgrade(o *object, path string) (*object, error) {
	if err := refuseInexpressible(o, path); err != nil {
		return nil, err
	}
	out := new(object)
	for _, m := range o.members {
		if err := downgradeMember(out, o, m, path); err != nil {
			return nil, err
		}
	}
	return separateMatching(out), nil
}

func downgradeMember(out, o *object, m member, path string) error {
	at := path + "/" + escape(m.name)
	switch m.name {
	case "prefixItems":
		out.set("items", m.value)
	case "items", "additionalItems":
		downgradeItems(out, o, m)
	case "dependentRequired", "dependentSchemas", "dependencies":
		mergeDependencies(out, m.value)
	case "contains":
		if least, ok := o.get("minContains"); ok && isZero(least) {
			return nil // none needed: it asserts nothing
		}
		out.set(m.name, m.value)
	case "if":
		if o.has("then") || o.has("else") {
			out.set(m.name, m.value)
		}
	case "then", "else":
		if o.has("if") {
			out.set(m.name, m.value)
		}
	case "pattern":
		p, err := toECMAScript(m.value.(string), at)
		out.set(m.name, p)
		return err
	case "patternProperties":
		return downgradePatterns(out, m.value.(*object), at)
	default:
		if cliKeywords[m.name] {
			out.set(m.name, m.value)
		}
	}
	return nil
}

func isZero(v any) bool {
	f, ok := toFloat(v)
	return ok && f == 0
}

func refuseInexpressible(o *object, path string) error {
	for _, name := range []string{"unevaluatedProperties", "unevaluatedItems"} {
		if v, ok := o.get(name); ok && v != true {
			return notForCLI(path+"/"+name, "it has no draft-07 spelling; use additionalProperties or additionalItems")
		}
	}
	if least, ok := o.get("minContains"); ok && o.has("contains") {
		if f, _ := toFloat(least); f > 1 {
			return notForCLI(path+"/minContains", "it has no draft-07 spelling above 1")
		}
	}
	if o.has("maxContains") && o.has("contains") {
		return notForCLI(path+"/maxContains", "it has no draft-07 spelling")
	}
	return nil
}

// downgradeItems turns "items beside prefixItems" into additionalItems, and drops additionalItems
// where there is no tuple: it means nothing there, and the CLI refuses it.
func downgradeItems(out, o *object, m member) {
	items, _ := o.get("items")
	_, oldTuple := items.([]any)
	switch {
	case m.name == "items" && o.has("prefixItems"):
		if !oldTuple {
			out.set("additionalItems", m.value)
		}
	case m.name == "items":
		if list, ok := m.value.([]any); !ok || len(list) > 0 {
			out.set("items", m.value)
		}
	case oldTuple && len(items.([]any)) > 0 && !o.has("prefixItems"):
		out.set("additionalItems", m.value)
	}
}

// mergeDependencies collects the three keywords in one. A property in two of them needs both.
func mergeDependencies(out *object, v any) {
	merged := new(object)
	if old, ok := out.get("dependencies"); ok {
		merged = old.(*object)
	}
	index := map[string]int{} // there may be thousands
	for i, m := range merged.members {
		index[m.name] = i
	}
	for _, m := range v.(*object).members {
		if i, twice := index[m.name]; twice {
			merged.members[i].value = newObject("allOf", []any{asSchema(merged.members[i].value), asSchema(m.value)})
		} else {
			merged.members = append(merged.members, m)
		}
	}
	out.set("dependencies", merged)
}

func asSchema(v any) any {
	if names, ok := v.([]any); ok {
		return newObject("required", names)
	}
	return v
}

func downgradePatterns(out, patterns *object, at string) error {
	translated := new(object)
	for _, m := range patterns.members {
		p, err := toECMAScript(m.name, at+"/"+escape(m.name))
		if err != nil {
			return err
		}
		translated.set(p, m.value)
	}
	out.set("patternProperties", translated)
	return nil
}

// separateMatching moves the properties that a pattern matches too into an allOf: the CLI refuses
// them side by side. Their pattern keeps them known to additionalProperties.
func separateMatching(o *object) *object {
	properties, _ := o.get("properties")
	patterns, ok := o.get("patternProperties")
	if !ok || properties == nil {
		return o
	}
	apart, rest := new(object), new(object)
	matches := matcher(patterns.(*object))
	for _, m := range properties.(*object).members {
		into := rest
		if matches(m.name) {
			into = apart
		}
		into.members = append(into.members, m)
	}
	if len(apart.members) == 0 {
		return o
	}
	o.set("properties", rest)
	all, _ := o.get("allOf")
	list, _ := all.([]any)
	o.set("allOf", append(list[:len(list):len(list)], newObject("properties", apart)))
	return o
}

func matcher(patterns *object) func(name string) bool {
	all := make([]*regexp.Regexp, len(patterns.members))
	for i, m := range patterns.members {
		all[i], _ = regexp.Compile(m.name)
	}
	return func(name string) bool {
		return slices.ContainsFunc(all, func(re *regexp.Regexp) bool {
			return re == nil || re.MatchString(name) // a translated pattern Go cannot read may match: keep them apart
		})
	}
}
