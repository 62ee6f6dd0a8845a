// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"github.com/drover-agents/drover/tool"
)

// Overrides replaces parts of a prompt without a change of the program. Each override is for one
// content hash, found in the [Descriptor]: where the part has changed since, the override is stale
// and is not applied but reported in [Rendered.Stale]. The zero value replaces nothing.
type Overrides struct {
	// Sections has the overrides by the path of the section.
	Sections map[string]SectionOverride `json:"sections,omitempty"`
	// Tools has the overrides by the name of the tool.
	Tools map[string]ToolOverride `json:"tools,omitempty"`
}

// A SectionOverride replaces parts of one section.
type SectionOverride struct {
	// Hash is the hash of the text that Text, Visibility and AppendExamples were made for:
	// [SectionDescriptor.Hash].
	Hash string `json:"hash,omitzero"`
	// Text replaces the text. It may have the placeholders that the section may have.
	Text *string `json:"text,omitempty"`
	// Visibility replaces the visibility of the section.
	Visibility *Visibility `json:"visibility,omitempty"`

	// SummaryHash is the hash of the summary that Summary was made for:
	// [SectionDescriptor.SummaryHash], which is empty for a section without one.
	SummaryHash string `json:"summaryHash,omitzero"`
	// Summary replaces the summary.
	Summary *string `json:"summary,omitempty"`

	// Examples replaces or removes examples.
	Examples []ExampleOverride[TaskExample] `json:"examples,omitempty"`
	// AppendExamples adds examples behind the others.
	AppendExamples []TaskExample `json:"appendExamples,omitempty"`
}

// A ToolOverride replaces parts of the description of a tool for the model. Its behaviour and its input stay the same.
type ToolOverride struct {
	// Hash is the hash of the contract that Description, Params and AppendExamples were made for:
	// [ToolDescriptor.Hash].
	Hash string `json:"hash,omitzero"`
	// Description replaces the description.
	Description *string `json:"description,omitempty"`
	// Params replaces descriptions by parameter name. A dot leads into an object or a list of objects: "filter.path".
	Params map[string]string `json:"params,omitempty"`

	// Examples replaces or removes examples.
	Examples []ExampleOverride[tool.Example] `json:"examples,omitempty"`
	// AppendExamples adds examples behind the others.
	AppendExamples []tool.Example `json:"appendExamples,omitempty"`
}

// An ExampleOverride replaces or removes one example.
type ExampleOverride[E any] struct {
	// Index is the position of the example in the section or tool as written, from 0.
	Index int `json:"index"`
	// Hash is the hash of the example that this was made for.
	Hash string `json:"hash"`
	// New replaces the example. Nil removes it.
	New *E `json:"new,omitempty"`
}

// A StaleOverride is one that was not applied.
type StaleOverride struct {
	// Section is the path, Tool the name of what it is for; one of them is empty.
	Section string `json:"section,omitzero"`
	Tool    string `json:"tool,omitzero"`
	// Target is the part that was not replaced: "text", "summary", "visibility", "description",
	// "params", "examples[0]" or "appendExamples". It is empty where no part was.
	Target string `json:"target,omitzero"`
	// MadeFor is the hash that the override was made for, Now that of the part as it is, or empty without such a part.
	MadeFor string `json:"madeFor,omitzero"`
	Now     string `json:"now,omitzero"`
	// Reason states why: the part has changed, it does not exist any more, or the section takes no overrides.
	Reason string `json:"reason"`
}
