// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A constraint puts the value of a struct tag into a schema. It gives back why it cannot.
type constraint struct {
	keyword string
	// on lists the types that it is about.
	on  typeSet
	put func(c *constrained, keyword, text string) error
}

// A constrained is the schema that a constraint is about, and the Go type behind it.
type constrained struct {
	*object
	typ  reflect.Type
	path string
}

const typeNumeric = typeNumber | typeInteger

// constraints are the tags that are understood, in the order in which they enter the schema.
var constraints = []constraint{
	{"enum", typeString | typeNumeric, putEnum},
	{"minimum", typeNumeric, putLeast},
	{"maximum", typeNumeric, putMost},
	{"exclusiveMinimum", typeNumeric, putNumber},
	{"exclusiveMaximum", typeNumeric, putNumber},
	{"multipleOf", typeNumeric, putFactor},
	{"minLength", typeString, counted(putLeast)},
	{"maxLength", typeString, counted(putMost)},
	{"pattern", typeString, putPattern},
	{"format", typeString, putFormat},
	{"minItems", typeArray, counted(putLeast)},
	{"maxItems", typeArray, counted(putMost)},
	{"uniqueItems", typeArray, putUnique},
	{"minProperties", typeObject, counted(putLeast)},
	{"maxProperties", typeObject, counted(putMost)},
	{"examples", typeString | typeNumeric, putExamples},
}

func constrain(o *object, f jsonField, path string) error {
	for _, c := range constraints {
		text, ok := f.tag.Lookup(c.keyword)
		if !ok {
			continue
		}
		target := c.target(constrained{o, f.typ, path})
		if target == nil {
			return invalid(path, "the tag %s is about %s, and does not fit a %s", c.keyword, c.on, f.typ)
		}
		if err := c.put(target, c.keyword, text); err != nil {
			return err
		}
	}
	if err := refuseEmptyRanges(constrained{o, f.typ, path}); err != nil {
		return err
	}
	return putDefault(o, f, path)
}

// target is the schema of the field, or of its elements where the constraint is about these.
func (c *constraint) target(of constrained) *constrained {
	for of.typ.Kind() == reflect.Pointer {
		of.typ = of.typ.Elem()
	}
	if of.types()&c.on != 0 {
		return &of
	}
	items, _ := of.get("items")
	if elements, ok := items.(*object); ok && of.types() == typeArray {
		inner := constrained{elements, of.typ.Elem(), of.path}
		if inner.types()&c.on != 0 {
			return &inner
		}
	}
	return nil
}

// types are those of the schema; a reference leads only to lists, maps and structs.
func (c *constrained) types() typeSet {
	if c.has("$ref") {
		if kind := c.typ.Kind(); kind == reflect.Slice || kind == reflect.Array {
			return typeArray
		}
		return typeObject
	}
	var types typeSet
	list, several := named(c.object).([]any) // in output: ["string","null"]
	if !several {
		list = []any{named(c.object)}
	}
	for _, name := range list {
		text, _ := name.(string)
		bit, _ := typeByName(text)
		types |= bit &^ typeNull
	}
	return types
}

// named is the type as the schema names it: a name or several.
func named(o *object) any {
	names, _ := o.get("type")
	return names
}

func (c *constrained) refuse(keyword, format string, args ...any) error {
	return invalid(c.path, "the tag "+keyword+" "+format, args...)
}

// number reads the value of a tag as JSON does.
func (c *constrained) number(keyword, text string) (json.Number, float64, error) {
	v, err := parseOrdered([]byte(text))
	n, ok := v.(json.Number)
	f, inRange := toFloat(v)
	if err != nil || !ok || !inRange {
		return "", 0, c.refuse(keyword, "is %q, which is no number", text)
	}
	return n, f, nil
}

func putNumber(c *constrained, keyword, text string) error {
	n, _, err := c.number(keyword, text)
	if err == nil {
		c.set(keyword, n)
	}
	return err
}

func putFactor(c *constrained, keyword, text string) error {
	n, f, err := c.number(keyword, text)
	if err == nil && f <= 0 {
		err = c.refuse(keyword, "is %s; it must be above zero", text)
	}
	if err == nil {
		c.set(keyword, n)
	}
	return err
}

func putLeast(c *constrained, keyword, text string) error {
	return putBound(c, keyword, text, func(tag, own float64) bool { return tag >= own })
}

func putMost(c *constrained, keyword, text string) error {
	return putBound(c, keyword, text, func(tag, own float64) bool { return tag <= own })
}

// putBound sets a bound that is within what the Go type has.
func putBound(c *constrained, keyword, text string, within func(tag, own float64) bool) error {
	n, f, err := c.number(keyword, text)
	if err != nil {
		return err
	}
	if old, ok := c.get(keyword); ok {
		if own, _ := toFloat(old); !within(f, own) {
			return c.refuse(keyword, "is %s, but a %s has %s %s; a tag can only narrow it", text, c.typ, keyword, appendJSON(nil, old))
		}
	}
	c.set(keyword, n)
	return nil
}

func counted(put func(*constrained, string, string) error) func(*constrained, string, string) error {
	return func(c *constrained, keyword, text string) error {
		if n, err := strconv.ParseUint(text, 10, 64); err != nil || n > math.MaxInt32 {
			return c.refuse(keyword, "is %q; it must be a whole number from 0 to %d", text, math.MaxInt32)
		}
		return put(c, keyword, text)
	}
}

func putPattern(c *constrained, keyword, text string) error {
	if _, err := regexp.Compile(text); err != nil {
		return c.refuse(keyword, "is no regular expression of Go: %v", err)
	}
	c.set(keyword, text)
	return nil
}

func putFormat(c *constrained, keyword, text string) error {
	if old, ok := c.get(keyword); ok && old != text || text == "" {
		return c.refuse(keyword, "is %q, but a %s has the format %q", text, c.typ, old)
	}
	c.set(keyword, text)
	return nil
}

func putUnique(c *constrained, keyword, text string) error {
	if text != "true" && text != "false" {
		return c.refuse(keyword, "is %q; it must be true or false", text)
	}
	c.set(keyword, text == "true")
	return nil
}

func putEnum(c *constrained, keyword, text string) error {
	values, err := c.list(keyword, text)
	if err != nil {
		return err
	}
	if old, ok := c.get(keyword); ok {
		for _, v := range values {
			if !slices.Contains(old.([]any), v) {
				return c.refuse(keyword, "has %s, which is not a value of %s", appendJSON(nil, v), c.typ)
			}
		}
	}
	if i, twice := repeated(plain(values).([]any)); twice {
		return c.refuse(keyword, "has %s twice", appendJSON(nil, values[i]))
	}
	if _, nullable := named(c.object).([]any); nullable { // an element, in output
		values = append(values, nil)
	}
	c.set(keyword, values)
	return nil
}

func putExamples(c *constrained, keyword, text string) error {
	values, err := c.list(keyword, text)
	if err == nil {
		c.set(keyword, values)
	}
	return err
}

// list reads values separated by commas. Each must be one of the Go type.
func (c *constrained) list(keyword, text string) ([]any, error) {
	var values []any
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		var v any = part
		if c.types()&typeNumeric != 0 {
			n, _, err := c.number(keyword, part)
			if err != nil {
				return nil, err
			}
			v = n
		}
		if part == "" || len(misfits(c.typ, appendJSON(nil, v))) > 0 {
			return nil, c.refuse(keyword, "has %q, which is no %s", part, c.typ)
		}
		values = append(values, v)
	}
	return values, nil
}

var ranges = [][2]string{
	{"minimum", "maximum"}, {"minLength", "maxLength"}, {"minItems", "maxItems"}, {"minProperties", "maxProperties"},
}

func refuseEmptyRanges(c constrained) error {
	for _, pair := range ranges {
		least, hasLeast := c.get(pair[0])
		most, hasMost := c.get(pair[1])
		low, _ := toFloat(least)
		high, _ := toFloat(most)
		if hasLeast && hasMost && low > high {
			return c.refuse(pair[0], "is above %s: nothing fits", pair[1])
		}
	}
	if items, ok := c.get("items"); ok {
		return refuseEmptyRanges(constrained{items.(*object), c.typ, c.path})
	}
	return nil
}

// putDefault sets the default, which must fit the field.
func putDefault(o *object, f jsonField, path string) error {
	c := constrained{o, f.typ, path}
	text, ok := f.tag.Lookup("default")
	if !ok {
		return nil
	}
	var value any = text
	if c.types() != typeString {
		var err error
		if value, err = parseOrdered([]byte(text)); err != nil {
			return c.refuse("default", "is %q, which is no JSON: %v", text, err)
		}
	}
	raw := appendJSON(nil, value)
	wrong := misfits(f.typ, raw)
	if f.quoted {
		wrong = nil // the schema has the form of the text around it
	}
	if s, err := build(o); err == nil { // it does not build alone if it refers to a type around it
		var all *ValidationError
		if errors.As(s.Validate(raw), &all) {
			wrong = all.Violations
		}
	}
	if len(wrong) > 0 {
		return c.refuse("default", "is %s, which does not fit: %s", raw, wrong[0])
	}
	o.set("default", value)
	return nil
}

// refuseLostTags finds constraints on an embedded struct, whose fields take its place: they would be lost.
func refuseLostTags(t reflect.Type, path string) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if embeddedStruct(sf) == nil || name != "" {
			continue
		}
		for _, c := range constraints {
			if _, ok := sf.Tag.Lookup(c.keyword); ok {
				return invalid(path+"."+sf.Name, "the tag %s is on an embedded struct, which has no JSON value of its own; put it on a field", c.keyword)
			}
		}
	}
	return nil
}
