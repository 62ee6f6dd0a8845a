// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// A Query chooses tools that fit everything that is set. The zero value chooses all tools that are not deprecated.
type Query struct {
	// Text is words, in any case of letters, that are looked for in name, title, tags, search hint,
	// names of parameters and description. A tool fits if it has one of them.
	Text string

	// Tags must all be there, of AnyTag at least one, of NoTag none.
	Tags, AnyTag, NoTag []string
	// Risk must all be among the tool's [tool.Tool.Risks], of NotRisk nothing.
	Risk, NotRisk tool.Risk
	// Needs must all be among the tool's [tool.Tool.Needs].
	Needs tool.Capability
	// SchemaKeys are parameters that the tool must have.
	SchemaKeys []string
	// Metadata must be there with these values. Values are equal if their JSON is.
	Metadata map[string]any
	// Namespace and Version are those of the tool's id. Empty means any.
	Namespace, Version string
	// IncludeDeprecated also chooses deprecated tools.
	IncludeDeprecated bool
	// Where chooses among the tools that fit the rest. A panic chooses not.
	Where func(*tool.Tool) bool

	// Limit bounds the answer, after Offset tools are left out. Zero means no limit.
	Limit, Offset int
}

// Find returns the tools of a registry that fit, in the order in which they were added. Where Text is set, the best come
// first: a word counts most in the name, less in title, tags and search hint, less in the parameters, least in the
// description; equals are in the order of their names. The tools must not be changed.
func Find(r *tool.Registry, q Query) []*tool.Tool {
	type found struct {
		tool  *tool.Tool
		score int
	}
	words, want := splitWords(q.Text), jsonForms(q.Metadata)
	var all []found
	for _, t := range r.Tools() {
		if !q.fits(t, want) {
			continue
		}
		score := score(t, words)
		if len(words) > 0 && score == 0 || !q.where(t) {
			continue
		}
		all = append(all, found{t, score})
	}
	if len(words) > 0 {
		slices.SortStableFunc(all, func(a, b found) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.tool.Name, b.tool.Name), cmp.Compare(a.tool.ID(), b.tool.ID()))
		})
	}
	all = all[min(max(q.Offset, 0), len(all)):]
	if q.Limit > 0 {
		all = all[:min(q.Limit, len(all))]
	}
	tools := make([]*tool.Tool, len(all))
	for i, f := range all {
		tools[i] = f.tool
	}
	return tools
}

// fits checks what needs no code of others.
func (q *Query) fits(t *tool.Tool, metadata map[string]json.RawMessage) bool {
	switch {
	case t.Deprecated != "" && !q.IncludeDeprecated,
		q.Namespace != "" && q.Namespace != cmp.Or(t.Namespace, tool.DefaultNamespace),
		q.Version != "" && q.Version != t.Version,
		!t.Risks().Has(q.Risk) || t.Risks()&q.NotRisk != 0,
		!t.Needs().Has(q.Needs):
		return false
	}
	return q.fitsTags(t) && hasAll(t, q.SchemaKeys) && hasMetadata(t, metadata)
}

func (q *Query) fitsTags(t *tool.Tool) bool {
	lacks := func(tag string) bool { return !t.HasTag(tag) }
	return !slices.ContainsFunc(q.Tags, lacks) &&
		(len(q.AnyTag) == 0 || slices.ContainsFunc(q.AnyTag, t.HasTag)) &&
		!slices.ContainsFunc(q.NoTag, t.HasTag)
}

func (q *Query) where(t *tool.Tool) (yes bool) {
	if q.Where == nil {
		return true
	}
	defer func() {
		if recover() != nil {
			yes = false
		}
	}()
	return q.Where(t)
}

func hasAll(t *tool.Tool, keys []string) bool {
	if len(keys) == 0 {
		return true
	}
	have := schemaKeys(t)
	return !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(have, key) })
}

// jsonForms gives the values in the form in which they are compared. One without JSON is nil, which equals nothing.
func jsonForms(metadata map[string]any) map[string]json.RawMessage {
	forms := make(map[string]json.RawMessage, len(metadata))
	for key, value := range metadata {
		forms[key], _ = plainjson.Form(value)
	}
	return forms
}

func hasMetadata(t *tool.Tool, want map[string]json.RawMessage) bool {
	for key, form := range want {
		value, ok := t.Metadata[key]
		if !ok || form == nil {
			return false
		}
		if have, err := plainjson.Form(value); err != nil || !bytes.Equal(have, form) {
			return false
		}
	}
	return true
}

// schemaKeys are the names of the tool's parameters, in the order of its schema.
func schemaKeys(t *tool.Tool) []string {
	if t.Input == nil {
		return nil
	}
	return t.Input.Properties()
}
