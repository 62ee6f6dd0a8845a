// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

// tool applies the overrides of one tool, to a copy of it.
func (a *overrider) tool(name string, o ToolOverride) {
	own, ok := a.t.tools[name]
	switch {
	case !ok:
		a.stale = append(a.stale, StaleOverride{Tool: name, Reason: reasonGone})
		return
	case own.node.NoOverrides:
		a.stale = append(a.stale, StaleOverride{Tool: name, Reason: reasonRefused})
		return
	}
	described := own.node.describedTools[own.at]
	changed, err := overrideTool(own.tool, described, o, a.judge(StaleOverride{Tool: name}))
	if err == nil && changed != nil {
		err = changed.Check()
	}
	if err != nil {
		a.add(Error{Section: own.node.path, Part: "override of tool " + name, Reason: "it does not fit the tool", Cause: err})
	} else if changed != nil {
		a.replaceTool(own, changed)
	}
}

// overrideTool returns a copy of a tool with what is fresh, or nil where nothing is.
func overrideTool(t *tool.Tool, d ToolDescriptor, o ToolOverride, fresh func(target, madeFor, now string) bool) (*tool.Tool, error) {
	with, changed := *t, false
	if o.Description != nil && fresh(targetDescription, o.Hash, d.Hash) {
		with.Description, changed = *o.Description, true
	}
	if len(o.Params) > 0 && fresh(targetParams, o.Hash, d.Hash) {
		input, err := describeParams(t.Input, o.Params)
		if err != nil {
			return nil, err
		}
		with.Input, changed = input, true
	}
	examples, edited := editExamples(t.Examples, d.Examples, o.Examples, fresh)
	if len(o.AppendExamples) > 0 && fresh(targetAppend, o.Hash, d.Hash) {
		examples, edited = append(examples, o.AppendExamples...), true
	}
	with.Examples = examples
	if !changed && !edited {
		return nil, nil
	}
	return &with, nil
}

func (a *overrider) replaceTool(own owned, by *tool.Tool) {
	f := &a.faces[own.node.index]
	if f.overriddenTools == nil { // the lists are still those of the template
		f.tools = slices.Clone(f.tools)
		f.overriddenTools = make([]bool, len(f.tools))
	}
	f.tools[own.at], f.overriddenTools[own.at] = by, true
}

// describeParams returns a schema with other descriptions of parameters. All else stays as it is, byte for byte.
func describeParams(s *schema.Schema, descriptions map[string]string) (*schema.Schema, error) {
	if s == nil {
		return nil, errors.New("the tool does not describe its parameters")
	}
	raw := s.JSON()
	for _, path := range slices.Sorted(maps.Keys(descriptions)) {
		var err error
		if raw, err = describeParam(raw, path, descriptions[path]); err != nil {
			return nil, err
		}
	}
	return schema.Parse(raw)
}

func describeParam(raw json.RawMessage, path, description string) (json.RawMessage, error) {
	at := 0
	for name := range strings.SplitSeq(path, ".") {
		found, ok := property(raw, at, name)
		if !ok {
			return nil, unknownParam(raw, path)
		}
		at = found
	}
	value, err := plainjson.Marshal(description)
	if err != nil {
		return nil, err
	}
	if from, to, ok := plainjson.Member(raw, at, "description"); ok {
		return slices.Concat(raw[:from], value, raw[to:]), nil
	}
	added := slices.Concat([]byte(`"description":`), value)
	if raw[at+1] != '}' {
		added = append(added, ',')
	}
	return slices.Concat(raw[:at+1], added, raw[at+1:]), nil
}

// property finds where the schema of a property begins, in the schema of an object or of a list of
// objects that begins at an offset.
func property(raw json.RawMessage, at int, name string) (int, bool) {
	if items, _, ok := plainjson.Member(raw, at, "items"); ok {
		return property(raw, items, name)
	}
	properties, _, ok := plainjson.Member(raw, at, "properties")
	if !ok {
		return 0, false
	}
	found, _, ok := plainjson.Member(raw, properties, name)
	return found, ok && raw[found] == '{'
}
