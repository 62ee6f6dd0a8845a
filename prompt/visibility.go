// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"

	"github.com/drover-agents/drover/session"
)

// The tools by which an agent gets the text behind summaries. No other tool may have these names.
const (
	// OpenSections opens sections for the rest of the run, with their tools and skills.
	OpenSections = "open_sections"
	// ReadSection gives the text of a section once.
	ReadSection = "read_section"
)

// A HiddenSection is one of which only the summary is shown.
type HiddenSection struct {
	Path, Number, Title string
	// OpenWith is the tool that the text names: [OpenSections] where tools or skills are held back, else [ReadSection].
	OpenWith string
	// Subsections are the paths of the enabled sections below it, all the way down.
	Subsections []string
	// Tools and Skills are the names of those that the section and its subsections hold back.
	Tools, Skills []string
}

// hide lists the subsections, tools and skills that the summary of a section hides.
func (r *renderer) hide(n *node) (HiddenSection, error) {
	h := HiddenSection{Path: n.path, Number: n.number, Title: n.Title, OpenWith: ReadSection}
	for i := n.index; i < n.end; {
		below := r.b.t.nodes[i]
		if below != n {
			enabled, err := r.enabled(below)
			if err != nil {
				return h, err
			}
			if !enabled {
				i = below.end
				continue
			}
			h.Subsections = append(h.Subsections, below.path)
		}
		for _, t := range below.Tools {
			h.Tools = append(h.Tools, t.Name)
		}
		for _, s := range below.Skills {
			h.Skills = append(h.Skills, s.Name())
		}
		i++
	}
	if len(h.Tools)+len(h.Skills) > 0 {
		h.OpenWith = OpenSections
	}
	return h, nil
}

// readSession takes the visibilities out of the session, all at one moment. The session may serve
// other prompts too, so a path that this one does not have is not an error.
func (r *renderer) readSession() error {
	if r.opts.Session == nil {
		return nil
	}
	known := session.Query[session.VisibilityOverrides](r.opts.Session)
	if err := known.Err(); err != nil { // it may hide a section
		return &Error{Prompt: r.b.t.name, Reason: "the visibilities in the session cannot be read", Err: ErrRender, Cause: err}
	}
	overrides, _ := known.Latest()
	r.inSession = make(map[string]Visibility, len(overrides.Sections))
	for path, word := range overrides.Sections {
		n, ok := r.b.t.byPath[path]
		if !ok {
			continue
		}
		var v Visibility
		if err := v.UnmarshalText([]byte(word)); err != nil {
			return r.fail(n, "in the session", err)
		}
		r.inSession[path] = v
	}
	return nil
}

func (r *renderer) visibility(n *node) (Visibility, error) {
	v, err := r.chosenVisibility(n)
	if err != nil {
		return v, err
	}
	if v > Summary {
		return v, r.fail(n, v.String()+" is neither Full nor Summary", nil)
	}
	if v == Summary && r.faces[n.index].summary == "" {
		return v, r.fail(n, "only a summary is to be shown, but the section has none", nil)
	}
	return v, nil
}

func (r *renderer) chosenVisibility(n *node) (Visibility, error) {
	if n == r.root {
		return Full, nil
	}
	if v, ok := r.opts.Visibility[n.path]; ok {
		return v, nil
	}
	if v, ok := r.inSession[n.path]; ok {
		return v, nil
	}
	if v := r.faces[n.index].visibility; v != nil {
		return *v, nil
	}
	if n.VisibilityWhen == nil {
		return n.Visibility, nil
	}
	return ask(r, n, "VisibilityWhen", n.VisibilityWhen)
}

func (r *renderer) enabled(n *node) (bool, error) {
	if n.Enabled == nil {
		return true, nil
	}
	return ask(r, n, "Enabled", n.Enabled)
}

// ask calls a predicate. A panic becomes an error.
func ask[T any](r *renderer, n *node, what string, predicate func(View) T) (answer T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.fail(n, fmt.Sprintf("%s panicked: %v", what, p), nil)
		}
	}()
	return predicate(View{r.opts.Session, n.scope, r.b.values}), nil
}
