// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/workspace"
)

// A Comparison is where two runs part. What is the same in both is empty.
type Comparison struct {
	// Prompt, Settings, Answer and Changes are differences as unified diffs. Changes are those of the patches of the workspaces.
	Prompt, Settings, Answer, Changes string
	// OnlyA and OnlyB are tools that one of the agents had.
	OnlyA, OnlyB []string
	// Same is how many of the first calls are the same, with the same outcome. A and B are the calls behind those; nil where a run
	// has none.
	Same int
	A, B *Call
	// Details are those of the runs.
	DetailsA, DetailsB *Details
}

// Compare compares two runs.
func Compare(a, b *Run) (c *Comparison, err error) {
	c = &Comparison{}
	if c.DetailsA, err = a.Details(); err != nil {
		return nil, err
	}
	if c.DetailsB, err = b.Details(); err != nil {
		return nil, err
	}
	c.Prompt = differences(c.DetailsA.Prompt, c.DetailsB.Prompt)
	c.Settings = differences(indented(a.Settings), indented(b.Settings))
	c.OnlyA, c.OnlyB = without(c.DetailsA.Tools, c.DetailsB.Tools), without(c.DetailsB.Tools, c.DetailsA.Tools)
	c.Answer = differences(a.answer(), b.answer())
	changesA, err := a.Diff()
	if err != nil {
		return nil, err
	}
	changesB, err := b.Diff()
	if err != nil {
		return nil, err
	}
	c.Changes = differences(string(changesA), string(changesB))
	callsA, callsB := c.DetailsA.Calls, c.DetailsB.Calls
	for c.Same < min(len(callsA), len(callsB)) && callsA[c.Same].alike(callsB[c.Same]) {
		c.Same++
	}
	if c.Same < len(callsA) {
		c.A = &callsA[c.Same]
	}
	if c.Same < len(callsB) {
		c.B = &callsB[c.Same]
	}
	return c, nil
}

// alike reports whether two calls ask for the same, and ended in the same way with the same output.
func (c Call) alike(other Call) bool {
	var a, b json.RawMessage
	if c.Result != nil {
		a = c.Result.Output
	}
	if other.Result != nil {
		b = other.Result.Output
	}
	return c.Name == other.Name && c.Status() == other.Status() && bytes.Equal(c.Input, other.Input) && bytes.Equal(a, b)
}

// answer is the answer of a run, empty for one without.
func (r *Run) answer() string {
	switch {
	case r.End == nil:
		return ""
	case len(r.End.Output) > 0:
		return indented(r.End.Output)
	}
	return r.End.Text
}

func indented(raw json.RawMessage) string {
	sorted, err := plainjson.Sorted(raw)
	if err != nil {
		return string(raw)
	}
	var b bytes.Buffer
	if json.Indent(&b, sorted, "", "  ") != nil {
		return string(raw)
	}
	return b.String() + "\n"
}

func differences(a, b string) string { return workspace.TextDiff(a, b, nil) }

func without(list, others []string) []string {
	known := map[string]bool{}
	for _, name := range others {
		known[name] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return known[name] })
}
