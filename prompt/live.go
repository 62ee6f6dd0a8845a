// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// LiveOptions configures a [Live] prompt. Nil and the zero value are ready to use.
type LiveOptions struct {
	// RenderOptions are those of every rendering. With a Session the rendering is recorded in it (see [Prompt.Record]), and
	// so are opened sections: a later rendering with that session shows them in full, unless its Visibility hides them.
	RenderOptions
	// Adapter is the agent that the prompt is for, for the record: "claude-code".
	Adapter string
	// Registry gets the tools of the prompt. It must not have tools of these names. Nil means a new
	// one, which has no other tools and decides nothing.
	Registry *tool.Registry
	// OnOpen is called before the model gets the opened sections. It makes their skills available: it mounts them and has
	// the agent reload its skills. After an error nothing is opened, and OnOpen may be called again for the same sections.
	// Calls do not overlap. It must not open sections itself. It is required where hidden sections have skills.
	OnOpen func(ctx context.Context, o Opened) error
	// Restart has nothing opened during the run: a model that asks for sections ends it with an
	// [ExpansionRequired]. It is for agents that take no notice of tools that are added during a run,
	// as Claude Code was at first. OnOpen is then not used.
	Restart bool
}

// Opened is what the opening of sections shows.
type Opened struct {
	// Paths are the sections that were hidden and are now shown in full, in the order of the prompt:
	// those that were asked for, and those above them.
	Paths []string
	// Text is their text, with all that is shown below them.
	Text string
	// Tools, Skills and Policies are those of the sections in Text, in their order.
	Tools    []*tool.Tool
	Skills   []*Skill
	Policies []gate.Policy
	// Withheld are the names of the tools that were added and do not reach the model in this run: the
	// lists of the run exclude them, or its agent ignores added tools. The result that the model reads names them.
	Withheld []string
	// Hidden are the sections in Text of which only the summary is shown.
	Hidden []HiddenSection
}

// A Live prompt is rendered for a run in which the model can open sections that are shown as summaries.
//
// Where sections are hidden the registry has one or both of two more tools. [OpenSections] returns the text of sections to
// the model, and adds their tools in the same run. [ReadSection] returns text only and changes nothing. The registry has
// them if the text that the model has read names them, and keeps them when no section is hidden any more. The lists of
// allowed tools of a run must have them, and the tools of hidden sections.
//
// Claude Code that is served the registry has opened tools in its very next request. With its tool
// search, which is on unless ENABLE_TOOL_SEARCH=false is in its environment, that request has only their
// names, and the model searches for the schemas; a call works at once in both cases.
//
//   - Opening a section opens its parents too. Below it, each section keeps its own visibility.
//   - Opening is atomic. Where it fails, no tool is added, nothing is recorded, and the model
//     gets the text with the reason.
//   - The policies of a section hold before its tools are there.
//   - Tools that do not reach the model are reported to it as not available, see [Opened.Withheld]. A
//     list of the run excludes them, or its agent ignores added tools. A later run has them.
//   - Sections stay open if the session rolls the call back: the model has read them. Their record is
//     a [session.SetVisibility] for each section, and [session.RenderedTools] for the added tools.
//
// A Live prompt is for one run, or for several that continue one conversation. It is safe for concurrent use.
type Live struct {
	b        *binding
	opts     LiveOptions
	rendered *Rendered
	renderID string // of the record
	registry *tool.Registry
	policies []gate.Policy

	opening chan struct{}   // has an entry during an opening
	offered map[string]bool // the tools of disclosure that the prompt has added; guarded by opening

	mu        sync.RWMutex
	shown     map[string]bool // sections whose text the model has
	hidden    []HiddenSection // those of which it has the summary, in the order of the prompt
	holding   map[string]bool // sections whose policies hold
	expansion *ExpansionRequired
	cancels   map[int]context.CancelCauseFunc
	nextID    int
}

// Live renders the prompt for a run in which hidden sections can be opened. Nil means no options. The
// context is that of the record in the session.
func (p *Prompt[Out]) Live(ctx context.Context, opts *LiveOptions) (*Live, error) {
	return p.b.live(ctx, opts)
}

func (b *binding) live(ctx context.Context, opts *LiveOptions) (*Live, error) {
	l := &Live{
		b: b, opening: make(chan struct{}, 1), offered: map[string]bool{},
		shown: map[string]bool{}, holding: map[string]bool{}, cancels: map[int]context.CancelCauseFunc{},
	}
	if opts != nil {
		l.opts = *opts
	}
	l.opts.Visibility = maps.Clone(l.opts.Visibility)
	if l.registry = l.opts.Registry; l.registry == nil {
		l.registry = tool.MustRegistry(nil)
	}
	var err error
	if l.rendered, err = b.render(nil, &l.opts.RenderOptions); err != nil {
		return nil, err
	}
	l.hidden = slices.Clone(l.rendered.Hidden)
	l.show(l.rendered.Sections)
	if err := l.checkSkills(); err != nil {
		return nil, err
	}
	l.policies = l.collectPolicies()
	tools := slices.Concat(l.rendered.Tools, l.disclosureTools(l.rendered.Hidden))
	if err := l.add(tools); err != nil {
		return nil, err
	}
	l.noteOffered(tools)
	if l.opts.Session != nil {
		if l.renderID, err = b.record(ctx, l.opts.Session, l.rendered, tools, l.opts.Adapter); err != nil {
			l.registry.Remove(names(tools)...)
			return nil, err
		}
	}
	return l, nil
}

// checkSkills refuses hidden skills that no OnOpen can mount.
func (l *Live) checkSkills() error {
	if l.opts.OnOpen != nil || l.opts.Restart {
		return nil
	}
	for _, n := range l.b.t.nodes {
		if len(n.Skills) > 0 && l.isBelowHidden(n) {
			return &Error{
				Prompt: l.b.t.name, Section: n.path, Err: ErrRender, Reason: "it is hidden and has skills, but OnOpen is not set to mount them",
				Next: "set OnOpen to a function that mounts Opened.Skills and has the agent reload its skills",
			}
		}
	}
	return nil
}

// Rendered is what the run begins with. Its Tools are those of the sections alone.
func (l *Live) Rendered() *Rendered { return l.rendered }

// Registry has the tools that the model may call at the moment.
func (l *Live) Registry() *tool.Registry { return l.registry }

// ToolNames are the names of all tools that the model may be given, those of hidden sections among them.
func (l *Live) ToolNames() []string {
	all := []string{OpenSections, ReadSection}
	for _, n := range l.b.t.nodes {
		all = append(all, names(n.Tools)...)
	}
	return all
}

// Policies are those of the sections and of the prompt, for the gate of the run. The policies of hidden
// sections are among them; they hold from the moment on at which their section is opened.
func (l *Live) Policies() []gate.Policy { return slices.Clone(l.policies) }

func (l *Live) collectPolicies() []gate.Policy {
	var all []gate.Policy
	for _, n := range l.b.t.nodes {
		switch {
		case l.shown[n.path]:
			all = append(all, n.Policies...)
		case l.isBelowHidden(n):
			for _, p := range n.Policies {
				p.When = l.holds(n.path, p.When)
				all = append(all, p)
			}
		}
	}
	return append(all, l.b.t.policies...)
}

// holds returns a condition: the section is open, and the policy's own condition holds.
func (l *Live) holds(path string, own func() bool) func() bool {
	return func() bool {
		l.mu.RLock()
		holding := l.holding[path]
		l.mu.RUnlock()
		return holding && (own == nil || own())
	}
}

// isBelowHidden reports whether the section can be opened during the run.
func (l *Live) isBelowHidden(n *node) bool {
	return slices.ContainsFunc(l.rendered.Hidden, func(h HiddenSection) bool {
		return n.path == h.Path || strings.HasPrefix(n.path, h.Path+".")
	})
}

// show marks sections as read by the model.
func (l *Live) show(sections []RenderedSection) {
	for _, s := range sections {
		if s.Visibility == Full {
			l.shown[s.Path] = true
		}
	}
}

func (l *Live) noteOffered(tools []*tool.Tool) {
	for _, t := range tools {
		l.offered[t.Name] = l.offered[t.Name] || t.Name == OpenSections || t.Name == ReadSection
	}
}

// add adds tools to the registry. The text names them, so they are always loaded.
func (l *Live) add(tools []*tool.Tool) error {
	loaded := make([]*tool.Tool, 0, len(tools))
	for _, t := range tools {
		if _, taken := l.registry.Lookup(t.Name); taken {
			return &Error{
				Prompt: l.b.t.name, Part: "tool " + t.Name, Err: ErrRender, Reason: "the registry has a tool of this name already",
				Next: "give each Live prompt a registry that has no tools of the prompt",
			}
		}
		own := *t
		own.AlwaysLoad = true
		loaded = append(loaded, &own)
	}
	return l.registry.Add(loaded...)
}
