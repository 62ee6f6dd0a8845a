// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/workspace"
)

// A place is where an agent works, if that is known here. One that was made for a conversation is removed
// when that and all forks of it are closed.
type place struct {
	w     *workspace.Workspace // nil is a folder that only the agent knows
	own   bool
	users atomic.Int64
}

// A placed adapter has a working directory of its own.
type placed interface{ Dir() string }

// enter finds the place of work. An evaluation that is not told one gets an empty folder.
func (e *evaluation) enter(ctx context.Context) error {
	if e.place != nil {
		return nil
	}
	w, err := e.chosenWorkspace()
	if err != nil {
		return err
	}
	p := &place{w: w}
	a, ok := e.adapter.(placed)
	if elsewhere := e.opts.Dir != "" || ok && a.Dir() != ""; p.w == nil && !elsewhere {
		if p.w, err = workspace.Open(ctx, &workspace.Options{Session: e.opts.Session}); err != nil {
			return err
		}
		p.own = true
		ownPlaces.Store(p.w, true)
	}
	p.users.Add(1)
	e.settles(p)
	return nil
}

// ownPlaces are the workspaces that evaluations have made for themselves. They are for nobody else.
var ownPlaces sync.Map

// chosenWorkspace is the workspace of the options, of the prompt's sections, or of the session, in this order. The
// prompt tells of its own, so that no other can be used.
func (e *evaluation) chosenWorkspace() (*workspace.Workspace, error) {
	told, err := e.prompt.Workspace(&prompt.RenderOptions{Session: e.opts.Session})
	if err != nil {
		return nil, err
	}
	if told == nil && e.opts.Workspace == nil {
		w, ok := workspace.OfSession(e.opts.Session)
		if _, own := ownPlaces.Load(w); !ok || own {
			return nil, nil
		}
		return w, nil
	}
	if told == nil {
		return stillOpen(e.opts.Workspace, "Options.Workspace")
	}
	w, ok := told.(*workspace.Workspace)
	switch {
	case !ok:
		return nil, fmt.Errorf("the prompt is about the workspace %s, which is a %T\n  next: open it with package workspace", told.Root(), told)
	case e.opts.Workspace != nil && e.opts.Workspace != w:
		return nil, fmt.Errorf("the prompt is about the workspace %s, and Options.Workspace is %s\n  next: leave Options.Workspace out, or use its Section in the prompt", w.Root(), e.opts.Workspace.Root())
	}
	return stillOpen(w, "the section")
}

// stillOpen refuses a workspace that is closed. from is what names it.
func stillOpen(w *workspace.Workspace, from string) (*workspace.Workspace, error) {
	if w.Closed() {
		return nil, fmt.Errorf("the workspace %s is closed\n  next: open it again with workspace.Open, or leave %s out", w.Root(), from)
	}
	return w, nil
}

// settles notes where the evaluation works, and returns where it did before. Forks may ask meanwhile.
func (e *evaluation) settles(p *place) (before *place) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, e.place = e.place, p
	return before
}

func (p *place) workspace() *workspace.Workspace {
	if p == nil {
		return nil
	}
	return p.w
}

// shared is the place for one more conversation.
func (p *place) shared() *place {
	if p != nil {
		p.users.Add(1)
	}
	return p
}

// leave removes the place if nobody else is there.
func (p *place) leave() error {
	if p == nil || p.users.Add(-1) > 0 || !p.own {
		return nil
	}
	ownPlaces.Delete(p.w)
	return p.w.Close()
}
