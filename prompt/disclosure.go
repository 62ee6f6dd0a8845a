// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"slices"

	"github.com/drover-agents/drover/tool"
)

// disclosureTools are the tools that the texts of hidden sections name, without those that the prompt has added already.
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
			return tool.Text(restartResult), nil
		}
		if err != nil {
			return tool.Result{}, unopened(opened, err)
		}
		return tool.Text(openedText(opened)), nil
	}, tool.ReadOnly)
}

// unopened is what the model reads of an opening that failed.
func unopened(o Opened, err error) error {
	if o.Text == "" {
		return forModel(err)
	}
	return tool.Errorf(tool.CategoryInternal, "%s", unopenedText(o, forModel(err)))
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

func (l *Live) readTool() *tool.Tool {
	return tool.Must(ReadSection, readDescription, func(_ context.Context, p readParams) (tool.Result, error) {
		text, err := l.read(p.SectionKey)
		if err != nil {
			return tool.Result{}, forModel(err)
		}
		return tool.Text(text), nil
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
		text += textOnlyNotice(p.keys[0])
	}
	return text, nil
}
