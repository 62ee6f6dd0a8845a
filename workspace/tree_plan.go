// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/drover-agents/drover/workspace/internal/applytree"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A plan is how a tree becomes what it was at a version.
type plan struct {
	tree    *Tree
	version int64
	opts    *RollbackOptions
	// was is what those paths were that changed since.
	was map[string]*item
	// chosen are those of them that differ and are to be put back, kept those that differ and are not.
	chosen, kept paths
	// holding are the folders that are needed because something in them is kept, and stirred those in
	// which something directly in them is.
	holding, stirred paths
	steps            map[string]*applytree.Step
	conflicts        []Conflict
	links            *links
}

func (t *Tree) plan(id int64, opts *RollbackOptions) *plan {
	p := &plan{
		tree: t, version: id, opts: opts, was: t.history.since(id),
		chosen: paths{}, kept: paths{}, holding: paths{}, stirred: paths{}, steps: map[string]*applytree.Step{},
	}
	if p.opts == nil {
		p.opts = &RollbackOptions{}
	}
	p.choose()
	p.links = newLinks(p)
	for _, at := range slices.Sorted(maps.Keys(p.chosen)) {
		p.add(at)
	}
	p.moves()
	p.folders()
	return p
}

func (p *plan) now(at string) *item { return p.tree.history.now[at] }

// choose parts the paths that differ. A path with links counts even if it is alike: the links may differ.
func (p *plan) choose() {
	for at, was := range p.was {
		now := p.now(at)
		switch differs := !alike(now, was); {
		case !differs && !now.linked() && !was.linked():
		case p.selects(at):
			p.chosen[at] = struct{}{}
		case differs:
			p.keep(at)
		}
	}
}

func (p *plan) selects(at string) bool {
	if p.opts.Only != nil && !slices.ContainsFunc(p.opts.Only, func(dir string) bool { return within(at, path.Clean(dir)) }) {
		return false
	}
	return p.opts.Keep == nil || !p.opts.Keep(at)
}

// keep leaves a path as it is. It needs the folders above it, if it is there.
func (p *plan) keep(at string) {
	p.kept[at] = struct{}{}
	if at == "." {
		return
	}
	p.stirred[path.Dir(at)] = struct{}{}
	if p.now(at) == nil {
		return
	}
	for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
		p.holding[dir] = struct{}{}
	}
}

func (p *plan) add(at string) {
	was, now := p.was[at], p.now(at)
	_, held := p.holding[at]
	switch {
	case held && was == nil:
		p.kept[at] = struct{}{}
	case held && was.Kind != filetree.Dir:
		p.conflict(at, "it was a "+was.Kind.String()+", and is a folder now in which something is kept")
	case was == nil:
		p.steps[at] = &applytree.Step{Path: at, Expect: &now.Entry}
	case (now == nil || now.Kind != was.Kind) && (was.Kind == filetree.Socket || was.Kind == filetree.Device):
		p.conflict(at, "a "+was.Kind.String()+" cannot be made again")
	case p.reachable(at):
		p.restore(at, was, now)
	}
}

func (p *plan) conflict(at, reason string) {
	p.conflicts = append(p.conflicts, Conflict{Path: at, Reason: reason})
}

// reachable ensures that the folders above a path that is put back exist, even if they were not chosen.
func (p *plan) reachable(at string) bool {
	for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
		now := p.now(dir)
		if now != nil && now.Kind == filetree.Dir || p.has(dir) {
			continue
		}
		if now != nil {
			p.conflict(at, fmt.Sprintf("%s was a folder, and is kept as a %s", dir, now.Kind))
			return false
		}
		delete(p.kept, dir)
		p.chosen[dir] = struct{}{}
		p.steps[dir] = &applytree.Step{Path: dir, Want: &p.was[dir].Entry}
	}
	return true
}

// has reports whether a path becomes what it was.
func (p *plan) has(at string) bool {
	_, ok := p.chosen[at]
	return ok
}

func (p *plan) restore(at string, was, now *item) {
	step := &applytree.Step{Path: at, Want: &was.Entry}
	if now != nil {
		step.Expect = &now.Entry
	}
	if was.Kind == filetree.File {
		switch link, stays := p.links.of(at); {
		case stays && alike(now, was):
			return
		case stays:
		case link != "":
			step.Link = link
		default:
			hash := was.hash
			step.Hash = hash.String()
			step.Write = func(dst *os.File) error { return p.tree.objects.WriteTo(hash, dst) }
		}
	}
	p.steps[at] = step
}

// moves finds files that were given another name, which need not be written again.
func (p *plan) moves() {
	at := map[inode]string{}
	for old, step := range p.steps {
		if now := p.now(old); step.Want == nil && now.Kind == filetree.File && !now.linked() {
			at[now.inode()] = old
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.steps)) {
		was, step := p.was[name], p.steps[name]
		if step.Write == nil || was.linked() {
			continue
		}
		if from, ok := at[was.inode()]; ok && p.now(from).hash == was.hash {
			step.From = from
			delete(at, was.inode())
		}
	}
}

// folders adds the folders in which something changes by the steps: their times become what they were, or
// stay what they are if something in them is kept.
func (p *plan) folders() {
	for _, at := range slices.Collect(maps.Keys(p.steps)) {
		if at == "." {
			continue
		}
		dir := path.Dir(at)
		now := p.now(dir)
		if now == nil || now.Kind != filetree.Dir {
			continue
		}
		if step := p.steps[dir]; step == nil {
			want := now.Entry
			p.steps[dir] = &applytree.Step{Path: dir, Want: &want, Expect: &now.Entry}
		}
	}
	for dir, step := range p.steps {
		if step.Want != nil && step.Want.Kind == filetree.Dir {
			step.Want = p.folder(dir, *step.Want)
		}
	}
}

func (p *plan) folder(dir string, want filetree.Entry) *filetree.Entry {
	now, was := p.now(dir), p.was[dir]
	if now == nil || now.Kind != filetree.Dir || was == nil || was.Kind != filetree.Dir {
		return &want
	}
	want.ModTime = was.ModTime
	if _, kept := p.stirred[dir]; kept {
		want.ModTime = now.ModTime
	}
	return &want
}
