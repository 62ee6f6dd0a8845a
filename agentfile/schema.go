// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/schema"
)

//go:embed schema.json
var schemaText []byte

// Schema returns the JSON Schema of agent files: schema.json of this package.
func Schema() json.RawMessage { return slices.Clone(schemaText) }

// A format is a kind of files, with its JSON Schema.
type format struct {
	schema func() *schema.Schema
	hints  func() hint
	// forbidden has the reasons for which a project file may not set some keys, by key.
	forbidden map[string]string
}

var agentFormat = newFormat(schemaText, nil)

func newFormat(text []byte, forbidden map[string]string) *format {
	return &format{
		schema: sync.OnceValue(func() *schema.Schema { return schema.MustParse(string(text)) }),
		hints: sync.OnceValue(func() hint {
			var all hint
			if err := json.Unmarshal(text, &all); err != nil {
				panic(err) // a mistake in the schema
			}
			return all
		}),
		forbidden: forbidden,
	}
}

// decode checks a tree against the format and reads it into a value.
func (f *format) decode(t *tree, found *problems, into any) {
	f.validate(t, found)
	if len(found.all) > 0 {
		return
	}
	f.measure(t, found)
	if len(found.all) > 0 {
		return
	}
	if err := json.Unmarshal(t.json, into); err != nil {
		found.fail("", err)
	}
}

// validate checks a tree against the schema. Its advice describes the value that is expected.
func (f *format) validate(t *tree, found *problems) {
	err := f.schema().Validate(t.json)
	violations, ok := errors.AsType[*schema.ValidationError](err)
	switch {
	case err == nil:
		return
	case !ok:
		found.fail("", err)
		return
	}
	for _, v := range violations.Violations {
		switch {
		case t.refused[v.Pointer]: // it was reported already
		case found.full():
			found.more++
		default:
			found.add(v.Pointer, f.reasonOf(v), f.adviceFor(v))
		}
	}
}

// measure finds times and sizes with an invalid value, such as 0s: the decoder does not report their position.
func (f *format) measure(t *tree, found *problems) {
	var all any
	if err := json.Unmarshal(t.json, &all); err != nil {
		found.fail("", err)
		return
	}
	walk("", all, func(pointer string, value any) {
		var err error
		here := f.hintAt(pointer)
		switch here.Ref {
		case "#/$defs/duration":
			err = new(Duration).UnmarshalText(fmt.Append(nil, value))
		case "#/$defs/size":
			err = new(Bytes).UnmarshalJSON(fmt.Append(nil, value))
		}
		if err != nil {
			found.note(pointer, err.Error(), "fix it: "+here.Description).Err = err
		}
	})
}

func walk(pointer string, value any, visit func(pointer string, value any)) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			walk(at(pointer, name), below, visit)
		}
	case []any:
		for i, below := range v {
			walk(at(pointer, i), below, visit)
		}
	default:
		visit(pointer, value)
	}
}

// reasonOf states the problem of a value in words for people.
func (f *format) reasonOf(v schema.Violation) string {
	why, forbidden := f.forbidden[keyOf(v.Pointer)]
	switch {
	case forbidden && v.Keyword == "additionalProperties":
		return fmt.Sprintf("a project file may not set %s, %s", keyOf(v.Pointer), why)
	case v.Keyword == "additionalProperties":
		return "there is no such key"
	case v.Keyword == "pattern":
		return "the value does not have the right form"
	case v.Keyword == "oneOf" || v.Keyword == "anyOf":
		return "the keys do not go together"
	case v.Pointer == "/version":
		return "this version of the format is not known"
	}
	return strings.ReplaceAll(v.Message, "property", "key")
}

// adviceFor returns the advice about a violation: the known keys, or the description of the value.
func (f *format) adviceFor(v schema.Violation) string {
	here := f.hintAt(v.Pointer)
	switch v.Keyword {
	case "required":
		key := strings.Split(v.Message, `"`)[1]
		return "add " + key + ": " + f.below(here, key).Description
	case "additionalProperties":
		if _, forbidden := f.forbidden[keyOf(v.Pointer)]; forbidden {
			return "leave it out: the file is not trusted; a flag or an agent file can set it"
		}
		return f.known(v.Pointer)
	case "pattern":
		if around := f.hintAt(parent(v.Pointer)); around.PropertyNames != nil && around.Properties == nil {
			return "fix the name: " + around.PropertyNames.Description
		}
	}
	if here.Description == "" { // an element of a list
		here = f.hintAt(parent(v.Pointer))
	}
	if names := slices.Sorted(maps.Keys(here.Properties)); v.Keyword == "type" && len(names) > 0 {
		return "write an object with keys among " + strings.Join(names, ", ") + ": " + here.Description
	}
	return "fix it: " + here.Description
}

// known returns the valid keys as advice about an unknown one.
func (f *format) known(pointer string) string {
	key := steps(pointer)
	names := slices.Sorted(maps.Keys(f.hintAt(parent(pointer)).Properties))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "$schema" })
	if near := ident.Nearest(key[len(key)-1], names); len(near) > 0 {
		return "write " + strings.Join(near, " or ")
	}
	return "choose among " + strings.Join(names, ", ")
}

func parent(pointer string) string { return pointer[:max(strings.LastIndexByte(pointer, '/'), 0)] }

// A hint is the part of the schema that describes a value.
type hint struct {
	Description          string          `json:"description"`
	Ref                  string          `json:"$ref"`
	Properties           map[string]hint `json:"properties"`
	PropertyNames        *hint           `json:"propertyNames"`
	Items                *hint           `json:"items"`
	AdditionalProperties json.RawMessage `json:"additionalProperties"`
	Defs                 map[string]hint `json:"$defs"`
}

// hintAt returns the hint of the value to which a pointer leads.
func (f *format) hintAt(pointer string) hint {
	now := f.hints()
	for _, step := range steps(pointer) {
		now = f.below(now, step)
	}
	return now
}

// below is the hint of a property or element, with the description of what it refers to.
func (f *format) below(h hint, step string) hint {
	next, ok := h.Properties[step]
	switch {
	case ok:
	case h.Items != nil:
		next = *h.Items
	default:
		_ = json.Unmarshal(h.AdditionalProperties, &next) // false and nothing have no hint
	}
	if name, is := strings.CutPrefix(next.Ref, "#/$defs/"); is {
		description, ref := next.Description, next.Ref
		next = f.hints().Defs[name]
		next.Ref = ref
		if description != "" {
			next.Description = description
		}
	}
	return next
}
