// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/tool"
)

type openParams struct {
	SectionKeys []string `json:"section_keys" doc:"The section keys that the summaries name, with their dots." minItems:"1"`
	Reason      string   `json:"reason" doc:"Why the sections are needed, in one sentence."`
}

type readParams struct {
	SectionKey string `json:"section_key" doc:"The section key that the summary names, with its dots."`
}

const (
	openDescription = "Opens sections of the instructions of which only a summary is shown. The result is their whole text; " +
		"the tools and skills that belong to them can be used from then on."
	restartDescription = "Opens sections of the instructions of which only a summary is shown, with the tools and skills that belong to " +
		"them. The work then starts again from scratch with the whole text, so call this before anything else."
	readDescription = "Gives the whole text of a section of the instructions of which only a summary is shown. It opens nothing and changes nothing."
)

// disclosureTools are the tools that the texts of hidden sections name, without those that the prompt
// has added already.
func (l *Live) disclosureTools(hidden []HiddenSection) []*tool.Tool {
	var tools []*tool.Tool
	for _, t := range []*tool.Tool{l.openTool(), l.readTool()} {
		named := slices.ContainsFunc(hidden, func(h HiddenSection) bool {
			return h.OpenWith == t.Name || t.Name == OpenSections && l.mayHoldBack(h)
		})
		if named && !l.offered[t.Name] {
			tools = append(tools, t)
		}
	}
	return tools
}

// mayHoldBack reports whether the subtree has tools or skills, were it only in sections that are disabled
// for now: when they are enabled, the text that the model reads will name the tool that gives them.
func (l *Live) mayHoldBack(h HiddenSection) bool {
	n := l.b.t.byPath[h.Path]
	return slices.ContainsFunc(l.b.t.nodes[n.index:n.end], func(n *node) bool { return len(n.Tools)+len(n.Skills) > 0 })
}

func (l *Live) openTool() *tool.Tool {
	description := openDescription
	if l.opts.Restart {
		description = restartDescription
	}
	return tool.Must(OpenSections, description, func(ctx context.Context, p openParams) (tool.Result, error) {
		opened, err := l.open(ctx, p.Reason, p.SectionKeys)
		if _, restart := errors.AsType[*ExpansionRequired](err); restart {
			l.awaitEnd(ctx)
			return tool.Say("The sections are being opened. The work goes on in a new turn, with all of their text. End this turn now; call no more tools."), nil
		}
		if err != nil {
			return tool.Result{}, unopened(opened, err)
		}
		return tool.Say(opened.announce()), nil
	}, tool.ReadOnly)
}

// unopened is what the model reads of an opening that failed.
func unopened(o Opened, err error) error {
	if o.Text == "" {
		return forModel(err)
	}
	return tool.Errorf(tool.CategoryInternal, "%s\n\n---\nThis is the text of %s, but the sections could not be opened: "+
		"the tools and skills that belong to them are not available. Go on without them, or try again later. The reason: %v",
		o.Text, strings.Join(o.Paths, ", "), forModel(err))
}

// forModel leaves out what only the program has a use for.
func forModel(err error) error {
	e, ok := errors.AsType[*Error](err)
	switch {
	case ok && errors.Is(err, ErrOpen):
		return tool.Errorf(tool.CategoryNotFound, "%s", e.Reason)
	case ok:
		short := *e
		short.Next = ""
		return &short
	}
	return err
}

// announce is the text, and below it what is new beside the text.
func (o Opened) announce() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n---\nOpened: %s.", o.Text, strings.Join(o.Paths, ", "))
	var tools, skills []string
	for _, t := range reaching(o.Tools, o.Withheld) {
		if t.Served() {
			tools = append(tools, t.Name)
		}
	}
	for _, s := range o.Skills {
		skills = append(skills, s.Name())
	}
	if len(tools) > 0 {
		fmt.Fprintf(&b, " These tools can be called from now on: %s.", strings.Join(tools, ", "))
	}
	if len(o.Withheld) > 0 {
		fmt.Fprintf(&b, " These tools are not available in this run, do without them: %s.", strings.Join(o.Withheld, ", "))
	}
	if len(skills) > 0 {
		fmt.Fprintf(&b, " These skills can be used from now on: %s.", strings.Join(skills, ", "))
	}
	return b.String()
}

func (l *Live) readTool() *tool.Tool {
	return tool.Must(ReadSection, readDescription, func(_ context.Context, p readParams) (tool.Result, error) {
		text, err := l.read(p.SectionKey)
		if err != nil {
			return tool.Result{}, forModel(err)
		}
		return tool.Say(text), nil
	}, tool.ReadOnly)
}

// read gives the text of one hidden section as it would be if it were opened.
func (l *Live) read(key string) (string, error) {
	p, err := l.plan([]string{key})
	if err != nil {
		return "", err
	}
	r, err := l.b.render(l.b.t.byPath[p.keys[0]], &l.opts.RenderOptions)
	if err != nil {
		return "", err
	}
	text := r.Text
	if len(r.Tools)+len(r.Skills) > 0 {
		text += fmt.Sprintf("\n\n---\nThis is the text alone. Call `%s` with section key %q to work with what it offers.", OpenSections, p.keys[0])
	}
	return text, nil
}
