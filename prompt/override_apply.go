// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

const (
	reasonChanged = "it has changed since the override was made"
	reasonGone    = "it does not exist any more"
	reasonRefused = "the section takes no overrides"
)

// An overrider changes faces. What is stale is noted; what is wrong is an error.
type overrider struct {
	binder
	faces []face
	stale []StaleOverride
}

// override returns the faces with all overrides that are for the texts at hand.
func (b *binding) override(o *Overrides) ([]face, []StaleOverride, error) {
	over := &overrider{
		binder: binder{problems: problems{prompt: b.t.name, err: ErrOverride}, binding: b, used: map[reflect.Type]bool{}},
		faces:  slices.Clone(b.faces),
	}
	for _, path := range slices.Sorted(maps.Keys(o.Sections)) {
		over.section(path, o.Sections[path])
	}
	for _, name := range slices.Sorted(maps.Keys(o.Tools)) {
		over.tool(name, o.Tools[name])
	}
	return over.faces, over.stale, over.join()
}

// section applies the overrides of one section.
func (a *overrider) section(path string, o SectionOverride) {
	n, ok := a.t.byPath[path]
	switch {
	case !ok:
		a.stale = append(a.stale, StaleOverride{Section: path, Reason: reasonGone})
		return
	case n.NoOverrides:
		a.stale = append(a.stale, StaleOverride{Section: path, Reason: reasonRefused})
		return
	}
	fresh := func(target, madeFor, hash string) bool {
		if madeFor != hash {
			a.stale = append(a.stale, StaleOverride{Section: path, Target: target, Reason: reasonChanged})
		}
		return madeFor == hash
	}
	a.body(n, o, fresh)
	f := &a.faces[n.index]
	if o.Summary != nil && fresh("summary", o.SummaryHash, n.described.SummaryHash) {
		f.summary, f.overridden = "", true
		if summary := a.text(n, "summary", *o.Summary); summary != "" {
			f.summary = joinParts(n.heading, summary)
		}
	}
	if o.Visibility != nil && fresh("visibility", o.Hash, n.described.Hash) {
		visibility := *o.Visibility
		f.visibility, f.overridden = &visibility, true
	}
}

// body applies those overrides that change what a section shows in full.
func (a *overrider) body(n *node, o SectionOverride, fresh func(target, madeFor, hash string) bool) {
	written, changed := n.Text, false
	if o.Text != nil && fresh("text", o.Hash, n.described.Hash) {
		written, changed = *o.Text, true
	}
	examples, edited := editExamples(n.Examples, n.described.Examples, o.Examples, fresh)
	if len(o.AppendExamples) > 0 && fresh("appendExamples", o.Hash, n.described.Hash) {
		examples, edited = append(examples, o.AppendExamples...), true
	}
	for i, e := range examples {
		for _, reason := range e.check(a.t.tools) {
			a.add(Error{Section: n.path, Part: fmt.Sprintf("override of examples: example %d", i), Reason: reason})
		}
	}
	if changed || edited {
		f := &a.faces[n.index]
		f.full = joinParts(n.heading, a.text(n, "text", written), renderExamples(examples))
		f.overridden = true
	}
}

// text checks and fills a text as the template does with its own.
func (a *overrider) text(n *node, part, written string) string {
	t, flaws := newText(n.scope, written)
	part = "override of " + part
	for _, f := range flaws {
		line, column := position(written, f.offset)
		a.add(Error{Section: n.path, Part: part, Line: line, Column: column, Reason: f.reason})
	}
	if len(flaws) > 0 {
		return ""
	}
	return a.fill(n, part, written, t)
}

// editExamples replaces and removes examples where the hash is that of the example at hand.
func editExamples[E any](written []E, hashes []string, edits []ExampleOverride[E], fresh func(target, madeFor, hash string) bool) (edited []E, changed bool) {
	replaced := map[int]*E{}
	for _, e := range edits {
		hash := "none" // no override is made for it
		if e.Index >= 0 && e.Index < len(hashes) {
			hash = hashes[e.Index]
		}
		if fresh(fmt.Sprintf("examples[%d]", e.Index), e.Hash, hash) {
			replaced[e.Index] = e.New
		}
	}
	for i, e := range written {
		if by, ok := replaced[i]; !ok {
			edited = append(edited, e)
		} else if by != nil {
			edited = append(edited, *by)
		}
	}
	return edited, len(replaced) > 0
}
