// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/applytree"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// carryOut carries out the plan, unless it is refused or only a dry run.
func (p *writeBackPlan) carryOut(result WriteBackResult, state *writeBackState) (WriteBackResult, error) {
	slices.SortStableFunc(p.skipped, func(a, b SkippedPath) int { return strings.Compare(a.Path, b.Path) })
	slices.SortStableFunc(p.conflicts, func(a, b plannedConflict) int { return strings.Compare(a.Path, b.Path) })
	p.conflicts = slices.CompactFunc(p.conflicts, func(a, b plannedConflict) bool {
		return a.Path == b.Path && a.hard == b.hard
	})
	result.Skipped = p.skipped
	for _, c := range p.conflicts {
		result.Conflicts = append(result.Conflicts, c.Conflict)
	}
	if refused := p.refused(); len(refused) > 0 {
		return result, &ConflictError{refused}
	}
	done := result
	p.list(&done)
	if p.opts.DryRun || len(done.Written)+len(done.Deleted) == 0 {
		return done, nil
	}
	written, err := p.apply(&done, state)
	if !written {
		return result, err
	}
	return done, err
}

// refused are the conflicts that stop everything.
func (p *writeBackPlan) refused() []Conflict {
	var refused []Conflict
	for _, c := range p.conflicts {
		if c.hard || !p.opts.Force {
			refused = append(refused, c.Conflict)
		}
	}
	return refused
}

func (p *writeBackPlan) list(result *WriteBackResult) {
	for _, t := range p.targets.all {
		for rel, step := range t.plan {
			at := HostPath{t.workspacePath(rel), t.host(rel)}
			if step.Want != nil {
				result.Written = append(result.Written, at)
			} else {
				result.Deleted = append(result.Deleted, at)
			}
		}
	}
	for _, list := range [][]HostPath{result.Written, result.Deleted} {
		slices.SortFunc(list, func(a, b HostPath) int { return strings.Compare(a.Path, b.Path) })
	}
}

// apply carries out the plan for all targets, or for none, and reports which. With an error also the first
// is possible: that something of ours is left.
func (p *writeBackPlan) apply(result *WriteBackResult, state *writeBackState) (written bool, err error) {
	var busy []*target
	var steps [][]applytree.Step
	var keep [][]string
	for _, t := range p.targets.all {
		if len(t.plan) > 0 {
			busy, steps, keep = append(busy, t), append(steps, t.steps()), append(keep, p.asideOf(t))
		}
	}
	run, err := p.applyAll(state, busy, steps, keep)
	if err != nil {
		for _, t := range busy {
			t.uncreate()
		}
		return false, err
	}
	for _, t := range busy {
		t.touchFolders(p.now)
		p.remember(t)
	}
	err = run.end()
	p.nameAside(result, run, busy)
	if err != nil {
		err = advice.Wrap(fmt.Errorf("workspace: everything was written back, but what was replaced could not be removed from %s: %w", run.folder, err),
			"the next write-back to the same place tries it again")
	}
	return true, err
}

func (p *writeBackPlan) applyAll(state *writeBackState, busy []*target, steps [][]applytree.Step, keep [][]string) (*writeBackRun, error) {
	for _, t := range busy {
		if err := t.create(); err != nil {
			return nil, err
		}
	}
	run, err := state.begin(busy, keep)
	if err != nil {
		return nil, fmt.Errorf("workspace: nothing was written back: %w", err)
	}
	at, refusal, err := run.apply(p.ctx, steps)
	switch {
	case errors.Is(err, applytree.ErrSurprise):
		return nil, surprise(busy[at], refusal, err)
	case err != nil:
		return nil, fmt.Errorf("workspace: nothing was written back: %w", err)
	}
	return run, nil
}

// surprise is the error for what the host did at the last moment.
func surprise(t *target, refusal applytree.Result, err error) error {
	surprised := &ConflictError{}
	for _, c := range refusal.Conflicts {
		surprised.Conflicts = append(surprised.Conflicts, Conflict{Path: t.workspacePath(c.Path), Reason: c.Reason})
	}
	if len(surprised.Conflicts) == 0 {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return surprised
}

// remember keeps what was written, as what the host is compared with from now on.
func (p *writeBackPlan) remember(t *target) {
	for rel, step := range t.plan {
		var written *side
		if step.Want != nil {
			written = &side{Entry: *step.Want, hash: step.Hash}
		}
		if step.ours != nil {
			written.Perm = step.ours.Perm
		}
		p.w.backs.sides[t.way(rel)] = written
		switch {
		case step.parent:
		case step.mounted == nil:
			p.w.backs.mounted[t.workspacePath(rel)] = nil
		default:
			p.w.backs.mounted[t.workspacePath(rel)] = step.mounted.file
		}
	}
}

// asideOf are the paths of a target of which the host's side is kept.
func (p *writeBackPlan) asideOf(t *target) []string {
	var keep []string
	for _, c := range p.conflicts {
		if c.target == t {
			keep = append(keep, c.rel)
		}
	}
	return keep
}

// nameAside records the paths of the host's sides of conflicts.
func (p *writeBackPlan) nameAside(result *WriteBackResult, run *writeBackRun, busy []*target) {
	for i, c := range p.conflicts {
		aside := run.asidePath(slices.Index(busy, c.target), c.rel)
		if _, err := os.Lstat(aside); err == nil {
			result.Conflicts[i].Aside, result.Aside = aside, run.folder
		}
	}
}

func (t *target) steps() []applytree.Step {
	var steps []applytree.Step
	for _, rel := range t.planned() {
		steps = append(steps, t.plan[rel].Step)
	}
	return steps
}

// touchFolders sets the time of folders in which something was made or removed, as the system would. It is best effort.
func (t *target) touchFolders(now time.Time) {
	touched := map[string]bool{}
	for rel, step := range t.plan {
		if parent := path.Dir(rel); (step.Want == nil) != (step.Expect == nil) && !touched[parent] {
			touched[parent] = true
			if e, err := t.writer.Lstat(parent); err == nil && e.Kind == filetree.Dir {
				e.ModTime = now.UnixNano()
				_ = t.writer.SetMeta(e)
			}
		}
	}
}

// contentWriter writes the content of a file of the workspace, with its holes and, if possible, the same blocks.
func (p *writeBackPlan) contentWriter(f *File) func(dst *os.File) error {
	return func(dst *os.File) error {
		h, err := parseHash(f.Hash)
		if err != nil {
			return err
		}
		return p.w.tree.objects.WriteTo(h, dst)
	}
}
