// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"maps"
	"slices"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// links decide which of the paths to put back keep their file, and which become names of another one. The paths that
// were one file at the version form a group, also a single path. No two groups share a file.
type links struct {
	plan    *plan
	members map[inode][]string // of the groups with several, sorted
	owner   map[inode]string   // which group a file that is there now belongs to
	anchor  map[string]string  // the path of a group whose file the others become
}

func newLinks(p *plan) *links {
	l := &links{plan: p, members: map[inode][]string{}, owner: map[inode]string{}, anchor: map[string]string{}}
	l.gather()
	for at := range p.kept {
		if now := p.now(at); now.linked() {
			l.owner[now.inode()] = "kept"
		}
	}
	for _, at := range slices.Sorted(maps.Keys(p.chosen)) {
		l.claim(at)
	}
	return l
}

// gather finds the groups to which a path belongs that changed.
func (l *links) gather() {
	for at, was := range l.plan.was {
		if was.linked() {
			l.members[was.inode()] = append(l.members[was.inode()], at)
		}
	}
	for node, members := range l.members {
		for at := range l.plan.tree.history.names[node] {
			if _, changed := l.plan.was[at]; !changed {
				members = append(members, at)
			}
		}
		slices.Sort(members)
		l.members[node] = members
	}
}

func (l *links) was(at string) *item { return l.plan.tree.history.value(l.plan.was, at) }

func (l *links) group(at string) string {
	if was := l.was(at); was.linked() {
		if members := l.members[was.inode()]; len(members) > 0 {
			return "/" + members[0]
		}
	}
	return "/" + at
}

// claim gives the file of a path to its group, if it has the right content and belongs to no group yet.
func (l *links) claim(at string) {
	was := l.was(at)
	if was == nil || was.Kind != filetree.File {
		return
	}
	group := l.group(at)
	if _, done := l.anchor[group]; done {
		return
	}
	candidates := []string{at}
	if was.linked() {
		candidates = l.members[was.inode()]
	}
	for _, name := range candidates {
		if l.fits(name) {
			l.owner[l.plan.now(name).inode()] = group
			l.anchor[group] = name
			return
		}
	}
	l.anchor[group] = at // it is written, and the others are linked to it
}

// fits reports whether the file at a path can stay what it is.
func (l *links) fits(at string) bool {
	now, was := l.plan.now(at), l.was(at)
	if now == nil || now.Kind != filetree.File || now.hash != was.hash || now.Size != was.Size {
		return false
	}
	if _, kept := l.plan.kept[at]; kept {
		return false
	}
	_, taken := l.owner[now.inode()]
	return !taken
}

// of returns the path to whose file a path becomes a link, or that it stays what it is. If neither, its content is written.
func (l *links) of(at string) (link string, stays bool) {
	group := l.group(at)
	anchor := l.anchor[group]
	now := l.plan.now(at)
	if now != nil && now.Kind == filetree.File && l.owner[now.inode()] == group {
		return "", true
	}
	if anchor == at {
		return "", false
	}
	return anchor, false
}
