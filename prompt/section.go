// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"strings"

	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// A Section is one part of a prompt. It is copied when a template is made of it, so one section can
// be used in several templates. Only Key and Title are required.
type Section struct {
	// Key names the section among its siblings: lower-case letters, digits, "_" and "-", at most 64.
	// The keys from the root down, joined by dots, are the path of the section.
	Key string
	// Title is the heading, one line of plain text.
	Title string
	// Text is the body, with placeholders. Shared indentation of all lines, and the empty lines around it, are taken off.
	Text string
	// Summary replaces the section and its subtree where its visibility is [Summary]. It may have placeholders too.
	Summary string
	// Visibility is the default; see [RenderOptions] for settings with priority over it.
	Visibility Visibility
	// VisibilityWhen chooses at each rendering. It has priority over Visibility. Nil chooses nothing.
	VisibilityWhen func(View) Visibility
	// Params declares the structs that fill the placeholders of this section and its subtree. Where neither the section,
	// nor one above it, nor the definition declares any, all structs that are bound can fill them.
	Params Params
	// Enabled reports whether the section and its subtree are there at all. Nil means that they are.
	Enabled func(View) bool

	// Tools, Skills and Policies come and go with the section.
	Tools    []*tool.Tool
	Skills   []*Skill
	Policies []gate.Policy
	// Examples are shown below the text.
	Examples []TaskExample
	// Workspace is the folder of the files that the section describes. Nil means any folder.
	// Enabled sections of one prompt cannot have different ones.
	Workspace Workspace
	// NoOverrides keeps the section and its tools as they are written; see [Overrides].
	NoOverrides bool
	Children    []*Section

	verbatim bool // it is a [Definition.Text]
}

// A Workspace is a folder that an agent works in, as package workspace makes it.
type Workspace interface {
	Root() string
}

// Workspace is that of the enabled sections, or nil. It fails if they have different ones. A section of which only
// the summary is shown counts too: the agent may open it. Nil means no options.
func (p *Prompt[Out]) Workspace(opts *RenderOptions) (Workspace, error) {
	var found Workspace
	r := p.b.renderer(nil, opts)
	for _, n := range p.b.t.nodes {
		if n.Workspace == nil {
			continue
		}
		if p.b.err != nil { // Enabled may need what is not bound
			return nil, p.b.err
		}
		disabled, err := r.disabled(n)
		switch {
		case err != nil:
			return nil, err
		case disabled != nil:
		case found == nil:
			found = n.Workspace
		case found != n.Workspace:
			return nil, &Error{
				Prompt: p.b.t.name, Section: n.path, Err: ErrRender, Reason: fmt.Sprintf("it is about the workspace %s, and another section about %s", n.Workspace.Root(), found.Root()),
				Next: "give the prompt one workspace, with all mounts",
			}
		}
	}
	return found, nil
}

// Markdown returns a section with a text.
func Markdown(key, title, text string) *Section {
	return &Section{Key: key, Title: title, Text: text}
}

// With adds tools to the section and returns it.
func (s *Section) With(tools ...*tool.Tool) *Section {
	s.Tools = append(s.Tools, tools...)
	return s
}

// A Visibility sets how much of a section is shown.
type Visibility uint8

const (
	// Full shows the text, the examples and the children, and offers tools and skills.
	Full Visibility = iota
	// Summary shows the summary alone. Children, tools, skills and policies of the subtree are held
	// back until the section is opened.
	Summary
)

// String returns "full" or "summary".
func (v Visibility) String() string {
	switch v {
	case Full:
		return "full"
	case Summary:
		return "summary"
	}
	return fmt.Sprintf("Visibility(%d)", uint8(v))
}

// MarshalText writes "full" or "summary".
func (v Visibility) MarshalText() ([]byte, error) {
	if v > Summary {
		return nil, fmt.Errorf("prompt: %v is neither full nor summary", v)
	}
	return []byte(v.String()), nil
}

// UnmarshalText reads "full" or "summary", in any case.
func (v *Visibility) UnmarshalText(text []byte) error {
	switch strings.ToLower(string(text)) {
	case "full":
		*v = Full
	case "summary":
		*v = Summary
	default:
		return fmt.Errorf("prompt: visibility %q is neither full nor summary", text)
	}
	return nil
}
