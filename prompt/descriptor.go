// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// A Descriptor has the hashes of the parts of a prompt. Two prompts with the same
// hash of a part have the same text there; an override is for one such hash.
type Descriptor struct {
	Namespace string              `json:"namespace"`
	Key       string              `json:"key"`
	Sections  []SectionDescriptor `json:"sections"`
	Tools     []ToolDescriptor    `json:"tools,omitempty"`
	Skills    []SkillDescriptor   `json:"skills,omitempty"`
}

// A SectionDescriptor has the hashes of one section, as it is written in the template.
type SectionDescriptor struct {
	Path string `json:"path"`
	// Hash is the SHA-256 of the text with its placeholders, without shared indentation.
	Hash string `json:"hash"`
	// SummaryHash is that of the summary. It is empty without a summary.
	SummaryHash string `json:"summaryHash,omitzero"`
	// Examples are the hashes of the examples, in order.
	Examples []string `json:"examples,omitempty"`
	// Overridden says that an override changed what was shown.
	Overridden bool `json:"overridden,omitzero"`
}

// A ToolDescriptor has the hashes of one tool, as the section has it.
type ToolDescriptor struct {
	Name    string `json:"name"`
	Section string `json:"section"`
	// Hash is the SHA-256 of the contract: name, description, input and output schema.
	Hash string `json:"hash"`
	// Examples are the hashes of the examples, in order.
	Examples []string `json:"examples,omitempty"`
	// Overridden says that an override changed what was shown.
	Overridden bool `json:"overridden,omitzero"`
}

// A SkillDescriptor has the hash of one skill.
type SkillDescriptor struct {
	Name    string `json:"name"`
	Section string `json:"section"`
	Hash    string `json:"hash"`
}

// describe computes all hashes, once.
func (t *template) describe() {
	t.descriptor = &Descriptor{Namespace: t.namespace, Key: t.key}
	for _, n := range t.nodes {
		n.describe()
		t.descriptor.Sections = append(t.descriptor.Sections, n.described)
		t.descriptor.Tools = append(t.descriptor.Tools, n.describedTools...)
		t.descriptor.Skills = append(t.descriptor.Skills, n.describedSkills...)
	}
}

func (n *node) describe() {
	n.described = SectionDescriptor{Path: n.path, Hash: hash([]byte(n.body.source)), Examples: hashEach(n.Examples)}
	if n.summary.source != "" {
		n.described.SummaryHash = hash([]byte(n.summary.source))
	}
	for _, t := range n.Tools {
		n.describedTools = append(n.describedTools, ToolDescriptor{Name: t.Name, Section: n.path, Hash: contractHash(t), Examples: hashEach(t.Examples)})
	}
	for _, s := range n.Skills {
		n.describedSkills = append(n.describedSkills, SkillDescriptor{Name: s.Name(), Section: n.path, Hash: s.Hash()})
	}
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// contractHash covers name, description and schemas of a tool, without its examples.
func contractHash(t *tool.Tool) string {
	contract := struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"input,omitempty"`
		Output      json.RawMessage `json:"output,omitempty"`
	}{Name: t.Name, Description: t.Description}
	if t.Input != nil {
		contract.Input = t.Input.JSON()
	}
	if t.Output != nil {
		contract.Output = t.Output.JSON()
	}
	return hashJSON(contract)
}

func hashEach[T any](values []T) []string {
	var hashes []string
	for _, v := range values {
		hashes = append(hashes, hashJSON(v))
	}
	return hashes
}

// hashJSON hashes the JSON form of a value. Spaces in raw JSON inside it do not count.
func hashJSON(v any) string {
	raw, err := plainjson.Marshal(v)
	if err != nil {
		return "" // raw JSON was checked when the template was made
	}
	return hash(raw)
}
