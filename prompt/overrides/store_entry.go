// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/prompt"
)

// An entryKey names what an entry replaces: a part of a section or of a tool, as long as it has this hash.
type entryKey struct {
	Section, Tool, Target, Hash string
}

// An entryValue is the JSON of what is put there.
type entryValue = json.RawMessage

type entries map[entryKey]entryValue

// sorted lists the keys in the order in which they are written.
func (all entries) sorted() []entryKey {
	return slices.SortedFunc(maps.Keys(all), func(a, b entryKey) int {
		return cmp.Or(
			strings.Compare(a.Tool, b.Tool), // sections have none and come first
			strings.Compare(a.Section, b.Section),
			strings.Compare(a.Target, b.Target), strings.Compare(a.Hash, b.Hash),
		)
	})
}

// String gives `section "task": text`.
func (k entryKey) String() string {
	if k.Tool != "" {
		return fmt.Sprintf("tool %q: %s", k.Tool, k.Target)
	}
	return fmt.Sprintf("section %q: %s", k.Section, k.Target)
}

// The parts of a section or a tool that overrides replace, as [prompt.StaleOverride] names them.
const (
	targetText        = "text"
	targetSummary     = "summary"
	targetVisibility  = "visibility"
	targetDescription = "description"
	targetParams      = "params"
	targetAppend      = "appendExamples"
)

func exampleTarget(index int) string { return fmt.Sprintf("examples[%d]", index) }

// paramPrefix comes before the name of a parameter in a target: each has an entry of its own.
const paramPrefix = targetParams + "."

// exampleIndex reads "examples[0]".
func exampleIndex(target string) (int, bool) {
	digits, ok := strings.CutPrefix(target, "examples[")
	index, err := strconv.Atoi(strings.TrimSuffix(digits, "]"))
	return index, ok && err == nil && target == exampleTarget(index)
}

// stale reports whether an entry does not apply, and why.
func (f *File) stale(k entryKey, value entryValue) (prompt.StaleOverride, bool) {
	if now, err := f.hashFor(k); err == nil && now == k.Hash {
		return prompt.StaleOverride{}, false
	}
	var alone prompt.Overrides
	if k.addTo(&alone, value) != nil {
		return prompt.StaleOverride{}, false // an entry that does not fit its target is an error
	}
	found, _ := f.t.CheckOverrides(&alone)
	if len(found) == 0 {
		return prompt.StaleOverride{}, false
	}
	found[0].Target, found[0].MadeFor = k.Target, k.Hash
	return found[0], true
}

// find returns the hashes of what an entry is for, if it takes overrides.
func (f *File) find(k entryKey) (hashes, bool) {
	if k.Tool == "" {
		o, ok := f.now.Sections[k.Section]
		return hashes{o.Hash, o.SummaryHash, hashesOf(o.Examples)}, ok
	}
	o, ok := f.now.Tools[k.Tool]
	return hashes{o.Hash, "", hashesOf(o.Examples)}, ok
}

func hashesOf[E any](examples []prompt.ExampleOverride[E]) []string {
	var all []string
	for _, e := range examples {
		all = append(all, e.Hash)
	}
	return all
}

type hashes struct {
	whole, summary string
	examples       []string
}

// hashFor returns the hash of a part, or nothing if there is no such part.
func (h hashes) hashFor(target string) string {
	if target == targetSummary {
		return h.summary
	}
	index, ok := exampleIndex(target)
	switch {
	case !ok:
		return h.whole
	case index < 0 || index >= len(h.examples):
		return ""
	}
	return h.examples[index]
}

// hashFor returns the hash that an override must have now, or an error if the part cannot be overridden.
func (f *File) hashFor(k entryKey) (string, error) {
	h, ok := f.find(k)
	if !ok {
		all, takes := f.names(k.kind())
		reason := "there is no such " + k.kind()
		if slices.Contains(all, k.Section+k.Tool) {
			reason = "the section takes no overrides"
		}
		next := "none: there is no " + k.kind() + " that takes overrides"
		if takes != nil {
			next = strings.Join(takes, ", ")
		}
		return "", f.refuse(k, reason, "use one of "+next)
	}
	now := h.hashFor(k.Target)
	if now == "" && k.Target != targetSummary {
		return "", f.refuse(k, fmt.Sprintf("there is no %s", k.Target), fmt.Sprintf("it has %d examples, counted from 0", len(h.examples)))
	}
	return now, nil
}

func (f *File) refuse(k entryKey, reason, next string) error {
	e := &prompt.Error{Prompt: f.of, Section: k.Section, Part: "override of " + k.Target, Reason: reason, Next: next, Err: prompt.ErrOverride}
	if k.Tool != "" {
		e.Part = fmt.Sprintf("override of tool %s: %s", k.Tool, k.Target)
	}
	return e
}

func (k entryKey) kind() string {
	if k.Tool != "" {
		return "tool"
	}
	return "section"
}

// names lists the sections or tools of the template, and those of them that take overrides.
func (f *File) names(kind string) (all, takes []string) {
	add := func(name string, ok bool) {
		if all = append(all, name); ok {
			takes = append(takes, name)
		}
	}
	d := f.t.Descriptor()
	if kind == "section" {
		for _, s := range d.Sections {
			_, ok := f.now.Sections[s.Path]
			add(s.Path, ok)
		}
		return all, takes
	}
	for _, t := range d.Tools {
		_, ok := f.now.Tools[t.Name]
		add(t.Name, ok)
	}
	return all, takes
}

// A builder makes entries for the texts of a template as they are.
type builder struct {
	f    *File
	all  entries
	errs []error
}

// entriesOf takes overrides apart. It is an error if any is not for what the template has now.
func (f *File) entriesOf(o *prompt.Overrides) (entries, error) {
	b := builder{f: f, all: entries{}}
	for _, path := range slices.Sorted(maps.Keys(o.Sections)) {
		b.section(path, o.Sections[path])
	}
	for _, name := range slices.Sorted(maps.Keys(o.Tools)) {
		b.tool(name, o.Tools[name])
	}
	return b.all, errors.Join(b.errs...)
}

func (b *builder) section(path string, o prompt.SectionOverride) {
	key := func(target, hash string) entryKey { return entryKey{Section: path, Target: target, Hash: hash} }
	if o.Text != nil {
		add(b, key(targetText, o.Hash), lines(*o.Text))
	}
	if o.Summary != nil {
		add(b, key(targetSummary, o.SummaryHash), lines(*o.Summary))
	}
	if o.Visibility != nil {
		add(b, key(targetVisibility, o.Hash), *o.Visibility)
	}
	for _, e := range o.Examples {
		add(b, key(exampleTarget(e.Index), e.Hash), e.New)
	}
	if len(o.AppendExamples) > 0 {
		add(b, key(targetAppend, o.Hash), o.AppendExamples)
	}
}

func (b *builder) tool(name string, o prompt.ToolOverride) {
	key := func(target, hash string) entryKey { return entryKey{Tool: name, Target: target, Hash: hash} }
	if o.Description != nil {
		add(b, key(targetDescription, o.Hash), lines(*o.Description))
	}
	for _, param := range slices.Sorted(maps.Keys(o.Params)) {
		add(b, key(paramPrefix+param, o.Hash), lines(o.Params[param]))
	}
	for _, e := range o.Examples {
		add(b, key(exampleTarget(e.Index), e.Hash), e.New)
	}
	if len(o.AppendExamples) > 0 {
		add(b, key(targetAppend, o.Hash), o.AppendExamples)
	}
}

// add adds one entry. It is a function because a method cannot have type parameters.
func add[V any](b *builder, k entryKey, v V) {
	value, err := encodeValue(v)
	now, hashErr := b.f.hashFor(k)
	switch {
	case hashErr != nil:
		err = hashErr
	case err != nil:
		err = b.f.refuse(k, err.Error(), "")
	case k.Hash != "" && k.Hash != now:
		err = b.f.refuse(k, fmt.Sprintf("it was made for the hash %s, but that is %q now", k.Hash, now), "make it for the text as it is now")
	}
	k.Hash = now
	if _, twice := b.all[k]; err == nil && twice {
		err = b.f.refuse(k, "it is there twice", "")
	}
	if err != nil {
		b.errs = append(b.errs, err)
		return
	}
	b.all[k] = value
}
