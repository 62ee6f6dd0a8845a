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

// The parts of a section or a tool that overrides replace, as [StaleOverride] names them.
const (
	targetText        = "text"
	targetSummary     = "summary"
	targetVisibility  = "visibility"
	targetDescription = "description"
	targetParams      = "params"
	targetAppend      = "appendExamples"
)

func exampleTarget(index int) string { return fmt.Sprintf("examples[%d]", index) }

// An overrider changes faces. It records stale overrides; an invalid one is an error.
type overrider struct {
	binder
	faces []face
	stale []StaleOverride
	// unfilled means that there are no values: texts are checked alone.
	unfilled bool
}

// override returns the faces with all overrides that are for the texts at hand.
func (b *binding) override(o *Overrides) ([]face, []StaleOverride, error) {
	over := &overrider{
		binder: binder{problems: problems{prompt: b.t.name, err: ErrOverride}, binding: b, used: map[reflect.Type]bool{}},
		faces:  slices.Clone(b.faces),
	}
	over.all(o)
	return over.faces, over.stale, over.join()
}

func (a *overrider) all(o *Overrides) {
	for _, path := range slices.Sorted(maps.Keys(o.Sections)) {
		a.section(path, o.Sections[path])
	}
	for _, name := range slices.Sorted(maps.Keys(o.Tools)) {
		a.tool(name, o.Tools[name])
	}
}

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
	fresh := a.judge(StaleOverride{Section: path})
	a.body(n, o, fresh)
	f := &a.faces[n.index]
	if o.Summary != nil && fresh(targetSummary, o.SummaryHash, n.described.SummaryHash) {
		f.summary, f.overridden[Summary] = "", true
		if summary := a.text(n, "summary", *o.Summary); summary != "" {
			f.summary = joinParts(n.heading, summary)
		}
	}
	if o.Visibility != nil && fresh(targetVisibility, o.Hash, n.described.Hash) {
		visibility := *o.Visibility
		f.visibility, f.overridden = &visibility, [...]bool{Full: true, Summary: true}
	}
}

// judge returns a function that reports whether a part has the hash of an override. It records stale overrides.
func (a *overrider) judge(of StaleOverride) func(target, madeFor, now string) bool {
	return func(target, madeFor, now string) bool {
		of.Target, of.MadeFor, of.Now, of.Reason = target, madeFor, now, staleness(target, madeFor, now)
		if of.Reason != "" {
			a.stale = append(a.stale, of)
		}
		return of.Reason == ""
	}
}

// staleness returns why an override does not match the part, or "". Only a summary can be added by an override.
func staleness(target, madeFor, now string) string {
	switch {
	case now == "" && target != targetSummary:
		return reasonGone
	case madeFor != now:
		return reasonChanged
	}
	return ""
}

// body applies those overrides that change what a section shows in full.
func (a *overrider) body(n *node, o SectionOverride, fresh func(target, madeFor, now string) bool) {
	written, changed := n.Text, false
	if o.Text != nil && fresh(targetText, o.Hash, n.described.Hash) {
		written, changed = *o.Text, true
	}
	examples, edited := editExamples(n.Examples, n.described.Examples, o.Examples, fresh)
	if len(o.AppendExamples) > 0 && fresh(targetAppend, o.Hash, n.described.Hash) {
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
		f.overridden[Full] = true
	}
}

// text checks and fills a text as the template does with its own.
func (a *overrider) text(n *node, part, written string) string {
	t, flaws := newText(n.scope, written)
	part = "override of " + part
	a.addFlaws(n, part, written, flaws)
	if len(flaws) > 0 || a.unfilled {
		return ""
	}
	return a.fill(n, part, written, t)
}

// editExamples replaces and removes examples where the hash is that of the example at hand.
func editExamples[E any](written []E, hashes []string, edits []ExampleOverride[E], fresh func(target, madeFor, now string) bool) (edited []E, changed bool) {
	replaced := map[int]*E{}
	for _, e := range edits {
		now := "" // there is no such example
		if e.Index >= 0 && e.Index < len(hashes) {
			now = hashes[e.Index]
		}
		if fresh(exampleTarget(e.Index), e.Hash, now) {
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
