// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// ErrOpen is wrapped when sections cannot be opened or read: they do not exist, or are not hidden.
var ErrOpen = errors.New("it cannot be opened")

// Open opens sections as the model does with [OpenSections]. Sections that are open already are skipped;
// that all of them are is an error. With [LiveOptions.Restart] the error is the [*ExpansionRequired].
func (l *Live) Open(ctx context.Context, paths ...string) (Opened, error) {
	opened, err := l.open(ctx, "", paths)
	if err != nil {
		return Opened{}, err
	}
	return opened, nil
}

// open opens sections, one caller at a time. An error with a text means that the sections can be read but were not opened.
func (l *Live) open(ctx context.Context, reason string, keys []string) (Opened, error) {
	select {
	case l.opening <- struct{}{}:
		defer func() { <-l.opening }()
	case <-ctx.Done():
		return Opened{}, context.Cause(ctx)
	}
	p, err := l.plan(keys)
	if err != nil {
		return Opened{}, err
	}
	if l.opts.Restart {
		return Opened{}, l.expand(&ExpansionRequired{Requested: p.requested(), Reason: reason, SectionKeys: p.keys})
	}
	opened, sections, err := l.renderPlan(p)
	if err != nil {
		return Opened{}, err
	}
	if err := l.carryOut(ctx, reason, &opened, sections); err != nil {
		return opened, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(sections)
	l.hidden = slices.DeleteFunc(l.hidden, func(h HiddenSection) bool { return slices.Contains(opened.Paths, h.Path) })
	l.hidden = append(l.hidden, opened.Hidden...)
	slices.SortStableFunc(l.hidden, func(a, b HiddenSection) int { return l.b.t.byPath[a.Path].index - l.b.t.byPath[b.Path].index })
	return opened, nil
}

type plan struct {
	keys  []string // as they were asked for, without those that are open
	roots []*node  // those whose summary the model has, in the order of the prompt
	full  []string // roots, and what has to be shown on the way down to a key
}

func (p *plan) requested() map[string]Visibility {
	all := make(map[string]Visibility, len(p.full))
	for _, path := range p.full {
		all[path] = Full
	}
	return all
}

// plan finds the sections for keys. It refuses all if one is unknown.
func (l *Live) plan(keys []string) (*plan, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.hidden) == 0 {
		return nil, l.refuse(nothingHidden)
	}
	p := &plan{}
	var open, unknown []string
	for _, key := range keys {
		key = strings.ToLower(strings.TrimSpace(key))
		root, ok := l.rootLocked(key)
		switch {
		case ok:
			p.add(l.b.t, key, root)
		case l.shown[key]:
			open = append(open, key)
		default:
			unknown = append(unknown, key)
		}
	}
	switch {
	case len(unknown) > 0:
		return nil, l.refuse(unknownKeys(unknown, l.hiddenKeysLocked()))
	case len(p.keys) == 0 && len(open) == 0:
		return nil, l.refuse(missingKeys(l.hiddenKeysLocked()))
	case len(p.keys) == 0:
		return nil, l.refuse(openKeys(open, l.hiddenKeysLocked()))
	}
	slices.SortFunc(p.roots, func(a, b *node) int { return a.index - b.index })
	return p, nil
}

func quoteKeys(keys []string) string {
	const most, longest = 10, 100
	var quoted []string
	for _, key := range keys[:min(len(keys), most)] {
		if len(key) > longest {
			key = strings.ToValidUTF8(key[:longest], "") + "..."
		}
		quoted = append(quoted, fmt.Sprintf("%q", key))
	}
	if more := len(keys) - most; more > 0 {
		quoted = append(quoted, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(quoted, ", ")
}

// rootLocked finds the section whose summary is shown for a hidden one.
func (l *Live) rootLocked(key string) (*node, bool) {
	for _, h := range l.hidden {
		if h.Path == key || slices.Contains(h.Subsections, key) {
			return l.b.t.byPath[h.Path], true
		}
	}
	return nil, false
}

func (l *Live) hiddenKeysLocked() []string {
	var keys []string
	for _, h := range l.hidden {
		keys = append(append(keys, h.Path), h.Subsections...)
	}
	return keys
}

// refuse makes an error that the model can read.
func (l *Live) refuse(reason string) error {
	return &Error{Prompt: l.b.t.name, Reason: reason, Err: ErrOpen}
}

func (p *plan) add(t *template, key string, root *node) {
	if slices.Contains(p.keys, key) {
		return
	}
	p.keys = append(p.keys, key)
	if !slices.Contains(p.roots, root) {
		p.roots = append(p.roots, root)
	}
	for _, n := range t.nodes[root.index:root.end] {
		leads := n.path == key || strings.HasPrefix(key, n.path+".")
		if leads && !slices.Contains(p.full, n.path) {
			p.full = append(p.full, n.path)
		}
	}
}

// renderPlan renders what is to be opened. All that a root has is new to the model.
func (l *Live) renderPlan(p *plan) (Opened, []RenderedSection, error) {
	opts := l.opts.RenderOptions
	opts.Visibility = maps.Clone(opts.Visibility)
	if opts.Visibility == nil {
		opts.Visibility = map[string]Visibility{}
	}
	maps.Copy(opts.Visibility, p.requested())
	var o Opened
	var sections []RenderedSection
	var texts []string
	for _, root := range p.roots {
		r, err := l.b.render(root, &opts)
		if err != nil {
			return Opened{}, nil, err
		}
		texts = append(texts, r.Text)
		sections = append(sections, r.Sections...)
		o.Tools, o.Skills = append(o.Tools, r.Tools...), append(o.Skills, r.Skills...)
		o.Policies, o.Hidden = append(o.Policies, r.Policies...), append(o.Hidden, r.Hidden...)
	}
	o.Text = strings.Join(texts, "\n\n")
	for _, s := range sections {
		if slices.Contains(p.full, s.Path) {
			o.Paths = append(o.Paths, s.Path)
		}
	}
	return o, sections, nil
}

// carryOut makes opened sections work. The policies come first, so that there is no moment at which the
// tools are there without them, and go last if it fails.
func (l *Live) carryOut(ctx context.Context, reason string, o *Opened, sections []RenderedSection) error {
	l.hold(sections, true)
	done := false
	defer func() {
		if !done { // also after a panic of OnOpen
			l.hold(sections, false)
		}
	}()
	if l.opts.OnOpen != nil {
		if err := l.opts.OnOpen(ctx, *o); err != nil {
			return err
		}
	}
	added := slices.Concat(o.Tools, l.disclosureTools(o.Hidden))
	if len(added) > 0 {
		if err := l.add(added); err != nil {
			return err
		}
	}
	o.Withheld = l.registry.Withheld(names(added)...)
	if err := l.remember(reason, o.Paths, reaching(added, o.Withheld)); err != nil {
		l.registry.Remove(names(added)...)
		return err
	}
	l.noteOffered(added)
	done = true
	return nil
}

// hold puts the policies of sections into force, or takes them out of it.
func (l *Live) hold(sections []RenderedSection, holding bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range sections {
		if s.Visibility == Full {
			l.holding[s.Path] = holding
		}
	}
}

// remember records the opened sections in the session, atomically. It is not part of the call's
// transaction: the model keeps the text and the tools even if the call is rolled back.
func (l *Live) remember(reason string, paths []string, added []*tool.Tool) error {
	s := l.opts.Session
	if s == nil {
		return nil
	}
	ctx, tx := s.Begin(context.Background(), "")
	err := setVisible(ctx, s, paths, reason)
	if err == nil && len(added) > 0 {
		_, err = s.Dispatch(ctx, session.RenderedTools{RenderEventID: l.renderID, Tools: toolSchemas(added)})
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return errors.Join(err, tx.Rollback("the sections could not be opened"))
	}
	return nil
}

func setVisible(ctx context.Context, s *session.Session, paths []string, reason string) error {
	for _, path := range paths {
		if _, err := s.Dispatch(ctx, session.SetVisibility{Section: path, Visibility: Full.String(), Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// reaching leaves out the tools that are withheld from the model.
func reaching(tools []*tool.Tool, withheld []string) []*tool.Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t *tool.Tool) bool { return slices.Contains(withheld, t.Name) })
}

func names(tools []*tool.Tool) []string {
	all := make([]string, 0, len(tools))
	for _, t := range tools {
		all = append(all, t.Name)
	}
	return all
}
