// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An entryKey says what an entry of a file replaces: a part of a section or of a tool, as long as it
// has this hash.
type entryKey struct {
	Section, Tool, Target, Hash string
}

// An entryValue is the JSON of what is put there.
type entryValue = json.RawMessage

// entries are the content of a file.
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

// paramPrefix comes before the name of a parameter in a target: each has an entry of its own.
const paramPrefix = targetParams + "."

// exampleIndex reads "examples[0]".
func exampleIndex(target string) (int, bool) {
	digits, ok := strings.CutPrefix(target, "examples[")
	index, err := strconv.Atoi(strings.TrimSuffix(digits, "]"))
	return index, ok && err == nil && target == exampleTarget(index)
}

// stale tells why an entry does not apply, if it does not.
func (t *template) stale(k entryKey) (StaleOverride, bool) {
	s := StaleOverride{Section: k.Section, Tool: k.Tool, Target: k.Target, MadeFor: k.Hash}
	n, described := t.find(k)
	switch {
	case n == nil:
		s.Reason = reasonGone
	case n.NoOverrides:
		s.Reason = reasonRefused
	default:
		s.Now = described.hashFor(k.Target)
		s.Reason = staleness(k.Target, k.Hash, s.Now)
	}
	return s, s.Reason != ""
}

// find returns the section that has what an entry is for, and its hashes; nil if there is none.
func (t *template) find(k entryKey) (*node, hashes) {
	if k.Tool == "" {
		if n, ok := t.byPath[k.Section]; ok {
			return n, hashes{n.described.Hash, n.described.SummaryHash, n.described.Examples}
		}
		return nil, hashes{}
	}
	own, ok := t.tools[k.Tool]
	if !ok {
		return nil, hashes{}
	}
	described := own.node.describedTools[own.at]
	return own.node, hashes{described.Hash, "", described.Examples}
}

// hashes are those of a section or a tool.
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

// hashFor returns the hash that an override must be made for now, or says why there can be none.
func (t *template) hashFor(k entryKey) (string, error) {
	switch n, described := t.find(k); {
	case n == nil:
		return "", t.refuse(k, "there is no such "+k.kind(), "use one of "+t.overridable(k.kind()))
	case n.NoOverrides:
		return "", t.refuse(k, reasonRefused, "use one of "+t.overridable(k.kind()))
	default:
		now := described.hashFor(k.Target)
		if now == "" && k.Target != targetSummary {
			return "", t.refuse(k, fmt.Sprintf("there is no %s", k.Target), fmt.Sprintf("it has %d examples, counted from 0", len(described.examples)))
		}
		return now, nil
	}
}

func (t *template) refuse(k entryKey, reason, next string) error {
	e := &Error{Prompt: t.name, Section: k.Section, Part: "override of " + k.Target, Reason: reason, Next: next, Err: ErrOverride}
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

// overridable lists the sections or tools that take overrides.
func (t *template) overridable(kind string) string {
	var names []string
	for _, n := range t.nodes {
		switch {
		case n.NoOverrides:
		case kind == "section":
			names = append(names, n.path)
		default:
			for _, d := range n.describedTools {
				names = append(names, d.Name)
			}
		}
	}
	if names == nil {
		return "none: there is no " + kind + " that takes overrides"
	}
	return strings.Join(names, ", ")
}

// A builder makes entries for the texts of a template as they are.
type builder struct {
	t    *template
	all  entries
	errs []error
}

// entriesOf takes overrides apart. It is an error if any is not for what the template has now.
func (t *template) entriesOf(o *Overrides) (entries, error) {
	b := builder{t: t, all: entries{}}
	for _, path := range slices.Sorted(maps.Keys(o.Sections)) {
		b.section(path, o.Sections[path])
	}
	for _, name := range slices.Sorted(maps.Keys(o.Tools)) {
		b.tool(name, o.Tools[name])
	}
	return b.all, errors.Join(b.errs...)
}

func (b *builder) section(path string, o SectionOverride) {
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

func (b *builder) tool(name string, o ToolOverride) {
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

// add adds one entry. It is no method because those have no types of their own.
func add[V any](b *builder, k entryKey, v V) {
	value, err := encodeValue(v)
	now, hashErr := b.t.hashFor(k)
	switch {
	case hashErr != nil:
		err = hashErr
	case err != nil:
		err = b.t.refuse(k, err.Error(), "")
	case k.Hash != "" && k.Hash != now:
		err = b.t.refuse(k, fmt.Sprintf("it was made for the hash %s, but that is %q now", k.Hash, now), "make it for the text as it is now")
	}
	k.Hash = now
	if _, twice := b.all[k]; err == nil && twice {
		err = b.t.refuse(k, "it is there twice", "")
	}
	if err != nil {
		b.errs = append(b.errs, err)
		return
	}
	b.all[k] = value
}
