// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// RenderOptions are choices for one rendering. The zero value is ready to use.
//
// The visibility of a section is the first of these that is set: Visibility, the session,
// Overrides, the section's VisibilityWhen, the section's Visibility.
type RenderOptions struct {
	// Session can be read by predicates, and can have visibilities of sections; see
	// [session.VisibilityOverrides]. Nil means no session.
	Session *session.Session
	// Visibility sets that of single sections by path. A path that the prompt does not have is an error.
	Visibility map[string]Visibility
	// Overrides replaces texts and descriptions. Nil replaces nothing.
	Overrides *Overrides
}

// Rendered is the input of a run.
type Rendered struct {
	Namespace, Key, Name string
	// Text is the prompt.
	Text string
	// Tools and Skills are those of the sections that are shown in full, in their order.
	Tools  []*tool.Tool
	Skills []*Skill
	// Policies are those of these sections, then those of the prompt.
	Policies []gate.Policy
	// Output describes the answer. It is nil for an answer in plain text.
	Output *schema.Schema
	// OutputSchema is Output in the form that agents take. It is nil where Output is.
	OutputSchema json.RawMessage
	// Descriptor has the sections and tools that are shown.
	Descriptor Descriptor
	// Sections are those that are shown, in order.
	Sections []RenderedSection
	// Hidden are those of them that only have their summary shown. Where there is any, the text
	// names the tools [OpenSections] and [ReadSection], which must then be offered too.
	Hidden []HiddenSection
	// Stale are the overrides that were not applied.
	Stale []StaleOverride
}

// A RenderedSection is a section that is shown.
type RenderedSection struct {
	Path, Number, Title string
	Visibility          Visibility
}

// Render renders the whole prompt. Nil means no options. The error is an [*Error], or several.
func (p *Prompt[Out]) Render(opts *RenderOptions) (*Rendered, error) { return p.b.render(nil, opts) }

// RenderSection renders one section in full, and below it what is visible there. Text, Tools, Skills, Policies and all the
// rest are those of this subtree alone. It is an error if the section or one above it is disabled.
func (p *Prompt[Out]) RenderSection(path string, opts *RenderOptions) (*Rendered, error) {
	root, err := p.b.t.at(path)
	if err != nil {
		return nil, err
	}
	return p.b.render(root, opts)
}

func (t *template) at(path string) (*node, error) {
	if n, ok := t.byPath[path]; ok {
		return n, nil
	}
	return nil, &Error{
		Prompt: t.name, Err: ErrRender, Reason: fmt.Sprintf("there is no section %q", path),
		Next: "use one of " + strings.Join(t.paths(), ", "),
	}
}

type renderer struct {
	b     *binding
	opts  RenderOptions
	root  *node // nil for the whole prompt
	faces []face
	// inSession has the visibilities of the session, by path.
	inSession map[string]Visibility
	out       *Rendered
	parts     []string // of the text
}

func (b *binding) renderer(root *node, opts *RenderOptions) *renderer {
	r := &renderer{b: b, root: root, faces: b.faces}
	if opts != nil {
		r.opts = *opts
	}
	return r
}

func (b *binding) render(root *node, opts *RenderOptions) (*Rendered, error) {
	if b.err != nil {
		return nil, b.err
	}
	r := b.renderer(root, opts)
	if err := r.prepare(); err != nil {
		return nil, err
	}
	from, to := 0, len(b.t.nodes)
	if root != nil {
		from, to = root.index, root.end
		disabled, err := r.disabled(root)
		if err == nil && disabled != nil {
			err = r.fail(disabled, "it is disabled", nil)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := from; i < to; {
		next, err := r.section(b.t.nodes[i])
		if err != nil {
			return nil, err
		}
		i = next
	}
	if root == nil {
		r.out.Policies = append(r.out.Policies, b.t.policies...)
	}
	r.out.Text = strings.Join(r.parts, "\n\n")
	return r.out, nil
}

func (r *renderer) prepare() error {
	t := r.b.t
	for _, path := range slices.Sorted(maps.Keys(r.opts.Visibility)) {
		if _, err := t.at(path); err != nil {
			return err
		}
	}
	r.out = &Rendered{
		Namespace: t.namespace, Key: t.key, Name: t.name,
		Output: t.output.schema, OutputSchema: t.output.forAgent,
		Descriptor: Descriptor{Namespace: t.namespace, Key: t.key},
	}
	r.grow()
	if err := r.readSession(); err != nil {
		return err
	}
	if r.opts.Overrides == nil {
		return nil
	}
	var err error
	r.faces, r.out.Stale, err = r.b.override(r.opts.Overrides)
	return err
}

// grow makes room for everything at once: most renderings show all.
func (r *renderer) grow() {
	t := r.b.t
	r.parts = make([]string, 0, len(t.nodes))
	r.out.Sections = make([]RenderedSection, 0, len(t.nodes))
	r.out.Tools = make([]*tool.Tool, 0, len(t.tools))
	r.out.Descriptor.Sections = make([]SectionDescriptor, 0, len(t.nodes))
	r.out.Descriptor.Tools = make([]ToolDescriptor, 0, len(t.tools))
}

// disabled returns the topmost disabled section among n and those above it, or nil.
func (r *renderer) disabled(n *node) (*node, error) {
	for _, above := range r.b.t.nodes[:n.index+1] {
		if above.end <= n.index {
			continue
		}
		if enabled, err := r.enabled(above); err != nil || !enabled {
			return above, err
		}
	}
	return nil, nil
}

// section adds one section, and returns the index of the next one.
func (r *renderer) section(n *node) (next int, err error) {
	enabled, err := r.enabled(n)
	if err != nil || !enabled {
		return n.end, err
	}
	v, err := r.visibility(n)
	if err != nil {
		return 0, err
	}
	r.out.Sections = append(r.out.Sections, RenderedSection{n.path, n.number, n.Title, v})
	r.describe(n, v)
	if v == Summary {
		hidden, err := r.hide(n)
		r.out.Hidden = append(r.out.Hidden, hidden)
		r.parts = append(r.parts, r.faces[n.index].summary, summaryNotice(hidden))
		return n.end, err
	}
	r.parts = append(r.parts, r.faces[n.index].full)
	r.offer(n)
	return n.index + 1, nil
}

func (r *renderer) describe(n *node, v Visibility) {
	d := n.described
	d.Overridden = r.faces[n.index].overridden[v]
	r.out.Descriptor.Sections = append(r.out.Descriptor.Sections, d)
}

func (r *renderer) offer(n *node) {
	f := r.faces[n.index]
	from := len(r.out.Descriptor.Tools)
	r.out.Tools = append(r.out.Tools, f.tools...)
	r.out.Skills = append(r.out.Skills, n.Skills...)
	r.out.Policies = append(r.out.Policies, n.Policies...)
	r.out.Descriptor.Tools = append(r.out.Descriptor.Tools, n.describedTools...)
	r.out.Descriptor.Skills = append(r.out.Descriptor.Skills, n.describedSkills...)
	for i, overridden := range f.overriddenTools {
		r.out.Descriptor.Tools[from+i].Overridden = overridden
	}
}

func (r *renderer) fail(n *node, reason string, cause error) error {
	return &Error{Prompt: r.b.t.name, Section: n.path, Reason: reason, Err: ErrRender, Cause: cause}
}
