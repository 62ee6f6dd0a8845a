// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"sync/atomic"

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
	p := &place{w: e.opts.Workspace}
	a, ok := e.adapter.(placed)
	if elsewhere := e.opts.Dir != "" || ok && a.Dir() != ""; p.w == nil && !elsewhere {
		w, err := workspace.Open(ctx, &workspace.Options{Session: e.opts.Session})
		if err != nil {
			return err
		}
		p.w, p.own = w, true
	}
	p.users.Add(1)
	e.settles(p)
	return nil
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
	return p.w.Close()
}
