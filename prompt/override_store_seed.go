// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

// seeds are entries that replace everything by what it is.
func (t *template) seeds() (entries, error) {
	o := &Overrides{Sections: map[string]SectionOverride{}, Tools: map[string]ToolOverride{}}
	for _, n := range t.nodes {
		if n.NoOverrides {
			continue
		}
		o.Sections[n.path] = n.seed()
		for _, tool := range n.Tools {
			o.Tools[tool.Name] = seedTool(tool)
		}
	}
	return t.entriesOf(o)
}

func (n *node) seed() SectionOverride {
	o := SectionOverride{Text: new(n.body.source), Examples: keepExamples(n.Examples)}
	if n.summary.source != "" {
		o.Summary = new(n.summary.source)
	}
	if n.VisibilityWhen == nil { // else there is none that is always the same
		o.Visibility = new(n.Visibility)
	}
	return o
}

func seedTool(t *tool.Tool) ToolOverride {
	o := ToolOverride{Description: new(t.Description), Examples: keepExamples(t.Examples)}
	if t.Input == nil {
		return o
	}
	o.Params = paramsOf(t.Input)
	maps.DeleteFunc(o.Params, func(_, description string) bool { return description == "" })
	return o
}

func keepExamples[E any](examples []E) []ExampleOverride[E] {
	var all []ExampleOverride[E]
	for i, e := range examples {
		all = append(all, ExampleOverride[E]{Index: i, New: &e})
	}
	return all
}

// A paramSchema is as much of a schema as the names of parameters need.
type paramSchema struct {
	Description string                     `json:"description"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Items       json.RawMessage            `json:"items"`
}

// paramsOf lists the descriptions of all parameters by their names, as [ToolOverride] has them.
func paramsOf(s *schema.Schema) map[string]string {
	params := map[string]string{}
	addParams(params, "", s.JSON())
	return params
}

// addParams adds those of an object, or of the objects in a list. What is no such schema has none.
func addParams(params map[string]string, prefix string, raw json.RawMessage) {
	var s paramSchema
	if json.Unmarshal(raw, &s) != nil {
		return
	}
	if s.Items != nil {
		addParams(params, prefix, s.Items)
		return
	}
	for name, raw := range s.Properties {
		var p paramSchema
		if strings.Contains(name, ".") || json.Unmarshal(raw, &p) != nil {
			continue // no override can name it
		}
		params[prefix+name] = p.Description
		addParams(params, prefix+name+".", raw)
	}
}

// unknownParam is the error about a parameter that a schema does not have.
func unknownParam(raw json.RawMessage, path string) error {
	known := map[string]string{}
	addParams(known, "", raw)
	return fmt.Errorf("it has no parameter %q (known: %s)", path, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

// checkOverrides reports overrides that are for the texts at hand but cannot be applied.
func (t *template) checkOverrides(o *Overrides) error {
	a := &overrider{
		binder:   binder{problems: problems{prompt: t.name, err: ErrOverride}, binding: &binding{t: t}, used: map[reflect.Type]bool{}},
		unfilled: true,
	}
	for _, n := range t.nodes {
		a.faces = append(a.faces, face{tools: n.Tools})
	}
	a.all(o)
	for _, path := range slices.Sorted(maps.Keys(o.Sections)) {
		a.checkSummary(t.byPath[path], o.Sections[path])
	}
	return a.join()
}

// checkSummary reports a section that is to show a summary which it does not have.
func (a *overrider) checkSummary(n *node, o SectionOverride) {
	summary := n.summary.source
	if o.Summary != nil {
		summary = dedent(*o.Summary)
	}
	shown := n.Visibility
	if o.Visibility != nil {
		shown = *o.Visibility
	}
	if shown == Summary && summary == "" {
		a.add(Error{Section: n.path, Reason: "only a summary is to be shown, but the section has none", Next: "set a summary first"})
	}
}
