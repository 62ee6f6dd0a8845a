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

// Overridable returns everything that overrides can replace, as it is now: overrides with the texts and
// hashes of the template, which change nothing.
func (t *Template[Out]) Overridable() *Overrides { return t.t.overridable() }

// Overridable is [Template.Overridable] of the template.
func (p *Prompt[Out]) Overridable() *Overrides { return p.b.t.overridable() }

// CheckOverrides returns the overrides that are stale. The error names those that are not and cannot be
// applied, whatever the params: it joins an [*Error] for each, and wraps [ErrOverride].
func (t *Template[Out]) CheckOverrides(o *Overrides) ([]StaleOverride, error) {
	return t.t.checkOverrides(o)
}

// CheckOverrides is [Template.CheckOverrides] of the template.
func (p *Prompt[Out]) CheckOverrides(o *Overrides) ([]StaleOverride, error) {
	return p.b.t.checkOverrides(o)
}

func (t *template) overridable() *Overrides {
	o := &Overrides{Sections: map[string]SectionOverride{}, Tools: map[string]ToolOverride{}}
	for _, n := range t.nodes {
		if n.NoOverrides {
			continue
		}
		o.Sections[n.path] = n.asOverride()
		for i, tool := range n.Tools {
			o.Tools[tool.Name] = toolAsOverride(tool, n.describedTools[i])
		}
	}
	return o
}

func (n *node) asOverride() SectionOverride {
	d := n.described
	o := SectionOverride{Hash: d.Hash, Text: new(n.body.source), SummaryHash: d.SummaryHash, Examples: keepExamples(n.Examples, d.Examples)}
	if n.summary.source != "" {
		o.Summary = new(n.summary.source)
	}
	if n.VisibilityWhen == nil { // else the visibility is not constant
		o.Visibility = new(n.Visibility)
	}
	return o
}

func toolAsOverride(t *tool.Tool, d ToolDescriptor) ToolOverride {
	o := ToolOverride{Hash: d.Hash, Description: new(t.Description), Examples: keepExamples(t.Examples, d.Examples)}
	if t.Input == nil {
		return o
	}
	o.Params = paramsOf(t.Input)
	maps.DeleteFunc(o.Params, func(_, description string) bool { return description == "" })
	return o
}

func keepExamples[E any](examples []E, hashes []string) []ExampleOverride[E] {
	var all []ExampleOverride[E]
	for i, e := range examples {
		all = append(all, ExampleOverride[E]{Index: i, Hash: hashes[i], New: &e})
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

// addParams adds the params of an object, or of the objects in a list. Other schemas have none.
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

func unknownParam(raw json.RawMessage, path string) error {
	known := map[string]string{}
	addParams(known, "", raw)
	return fmt.Errorf("it has no parameter %q (known: %s)", path, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

// checkOverrides applies overrides to texts that are not filled.
func (t *template) checkOverrides(o *Overrides) ([]StaleOverride, error) {
	a := &overrider{
		binder:   binder{problems: problems{prompt: t.name, err: ErrOverride}, binding: &binding{t: t}, used: map[reflect.Type]bool{}},
		unfilled: true,
	}
	for _, n := range t.nodes {
		a.faces = append(a.faces, face{tools: n.Tools})
	}
	a.all(o)
	for _, path := range slices.Sorted(maps.Keys(o.Sections)) {
		if n := t.byPath[path]; n != nil && !n.NoOverrides {
			a.checkSummary(n, o.Sections[path])
		}
	}
	return a.stale, a.join()
}

// checkSummary reports a section that is to show a summary which it does not have.
func (a *overrider) checkSummary(n *node, o SectionOverride) {
	summary, shown := n.summary.source, n.Visibility
	if o.Summary != nil && staleness(targetSummary, o.SummaryHash, n.described.SummaryHash) == "" {
		summary = dedent(*o.Summary)
	}
	if o.Visibility != nil && staleness(targetVisibility, o.Hash, n.described.Hash) == "" {
		shown = *o.Visibility
	}
	if shown == Summary && summary == "" {
		a.add(Error{Section: n.path, Reason: "only a summary is to be shown, but the section has none", Next: "set a summary first"})
	}
}
