// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/drover-agents/drover/workspace/internal/applytree"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// Rollback makes the tree what it was at the checkpoint, which stays. Checkpoints that were taken later
// stay too: the tree can be rolled forward to them.
//
// A file that is also known by a name outside of the tree is parted from it when it is put back. A concurrent change
// elsewhere in the tree is not put back. If there is a watcher, Rollback reports it as a conflict.
func (t *Tree) Rollback(ctx context.Context, to *Checkpoint, opts *RollbackOptions) (RolledBack, error) {
	if err := t.begin(ctx); err != nil {
		return RolledBack{}, err
	}
	defer t.unlock()
	if err := errors.Join(t.version(to), opts.check()); err != nil {
		return RolledBack{}, err
	}
	if err := (&refresh{tree: t, loose: true}).run(ctx); err != nil {
		return RolledBack{}, err
	}
	return t.carryOut(ctx, t.plan(to.id, opts))
}

// check refuses paths that are invalid in a tree: the empty one would mean everything, and others nothing.
func (o *RollbackOptions) check() error {
	if o == nil {
		return nil
	}
	for _, p := range o.Only {
		if _, err := filetree.Clean(p); err != nil {
			return fmt.Errorf("workspace: RollbackOptions.Only has %q, which is not a path in a tree: %w", p, err)
		}
	}
	return nil
}

// carryOut applies a plan and sees to it that the tree is what it should be then.
func (t *Tree) carryOut(ctx context.Context, p *plan) (RolledBack, error) {
	before := p.differing()
	rolled := RolledBack{Kept: p.worthTelling(p.kept), Conflicts: p.conflicts}
	if len(p.steps) == 0 {
		return rolled, nil
	}
	steps := make([]applytree.Step, 0, len(p.steps))
	also := make(map[string]reason, len(p.steps))
	for at, step := range p.steps {
		steps = append(steps, *step)
		also[at] = byContent
	}
	result, err := applytree.Apply(ctx, t.root, steps, applytree.Options{Work: t.store.work()})
	t.store.keepAside(result.Aside, len(result.Conflicts) > 0)
	if err != nil {
		t.full = true
		return rolled, errors.Join(fmt.Errorf("workspace: rolling back %s: %w", t.dir, err), t.recover())
	}
	rolled.Aside = result.Aside
	for _, c := range result.Conflicts {
		rolled.Conflicts = append(rolled.Conflicts, Conflict(c))
	}
	verify := &refresh{tree: t, loose: true, want: p.was, also: also, narrow: true}
	if err := verify.run(context.WithoutCancel(ctx)); err != nil {
		return rolled, fmt.Errorf("workspace: looking at what was rolled back: %w", err)
	}
	p.addLater(before)
	p.verify(before, &rolled)
	t.boundAside()
	if _, err := os.Lstat(rolled.Aside); err != nil {
		rolled.Aside = "" // there was no room for it
	}
	return rolled, nil
}

// differing are the chosen paths that are not what they were, or not linked as they were.
func (p *plan) differing() paths {
	differing := paths{}
	for at := range p.chosen {
		if _, step := p.steps[at]; step && !p.onlyTimes(at) || !alike(p.now(at), p.was[at]) && !p.onlyTimes(at) {
			differing[at] = struct{}{}
		}
	}
	delete(differing, ".")
	return differing
}

// onlyTimes reports a folder of which only the time differs, as in each in which a name came or went.
func (p *plan) onlyTimes(at string) bool {
	now, was := p.now(at), p.was[at]
	if now == nil || was == nil || now.Kind != filetree.Dir {
		return false
	}
	e := now.Entry
	e.ModTime = was.ModTime
	return e.Same(was.Entry)
}

// worthTelling are paths without the root and the folders of which only times differ, sorted.
func (p *plan) worthTelling(set paths) []string {
	var list []string
	for at := range set {
		if at != "." && !p.onlyTimes(at) {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list
}

// addLater adds the paths that changed only after the plan was made.
func (p *plan) addLater(before paths) {
	for at, was := range p.tree.history.since(p.version) {
		p.was[at] = was
		if _, kept := p.kept[at]; kept || at == "." || alike(p.now(at), was) || p.onlyTimes(at) || !p.selects(at) {
			continue
		}
		before[at] = struct{}{}
	}
}

// verify compares the tree with the wanted state, and records the result of each path.
func (p *plan) verify(before paths, rolled *RolledBack) {
	reported := map[string]bool{}
	for _, c := range rolled.Conflicts {
		reported[c.Path] = true
	}
	for _, at := range slices.Sorted(maps.Keys(before)) {
		_, kept := p.kept[at]
		switch {
		case kept:
		case alike(p.now(at), p.was[at]) || p.onlyTimes(at):
			rolled.Restored = append(rolled.Restored, at)
		case !reported[at]:
			rolled.Conflicts = append(rolled.Conflicts, Conflict{Path: at, Reason: p.mismatch(at)})
		}
	}
	slices.SortStableFunc(rolled.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
}

func (p *plan) mismatch(at string) string {
	now, was := p.now(at), p.was[at]
	switch {
	case now == nil:
		return "it was removed while it was rolled back"
	case was == nil:
		return "it was made while it was rolled back"
	case now.Kind != was.Kind:
		return "it became a " + now.Kind.String() + " while it was rolled back"
	case now.hash != was.hash || now.Target != was.Target:
		return "it was written to while it was rolled back"
	case now.UID != was.UID || now.GID != was.GID:
		return fmt.Sprintf("its owner was %d:%d, and this user cannot give it back", was.UID, was.GID)
	}
	return "its mode, times or attributes were changed while it was rolled back"
}
