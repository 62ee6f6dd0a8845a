// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// Apply makes every path of the plan what its step wants. Trouble with single paths is reported in the
// result, unless the plan is all or nothing; an error means that the tree is what it was before, or, if
// there is still a journal, that [Recover] has to finish. The context ends only the work before the first
// change: after that, everything is renaming, and done to its end.
func Apply(ctx context.Context, root *filetree.Root, steps []Step, opts Options) (Result, error) {
	steps, err := sorted(steps)
	if err != nil || len(steps) == 0 {
		return Result{}, err
	}
	r, err := begin(root, opts)
	if err != nil {
		return Result{}, err
	}
	defer r.work.Close()
	if err := r.prepare(ctx, steps); err != nil {
		return r.refusal(), errors.Join(err, r.abandon())
	}
	return r.execute()
}

func begin(root *filetree.Root, opts Options) (*run, error) {
	work, err := filepath.Abs(opts.Work)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, fmt.Errorf("applytree: work folder: %w", err)
	}
	if err := outside(root.Dir(), work); err != nil {
		return nil, err
	}
	if _, s, err := readJournal(work); err != nil || s != none {
		return nil, errors.Join(err, ErrUnfinished)
	}
	w, err := filetree.Open(work)
	if err != nil {
		return nil, err
	}
	r := newRun(root, w, &journal{AllOrNothing: opts.AllOrNothing})
	r.hold = opts.Hold
	if err := r.chooseScratch(); err != nil {
		return nil, errors.Join(err, r.abandon(), w.Close())
	}
	return r, nil
}

// outside refuses a work folder in the tree: it would be part of what it changes.
func outside(dir, work string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if work, err = filepath.EvalSymlinks(work); err != nil {
		return err
	}
	rel, err := filepath.Rel(dir, work)
	if err == nil && (rel == "." || filepath.IsLocal(rel)) {
		return advice.Wrap(fmt.Errorf("applytree: the work folder %s is in the tree %s", work, dir), "give one outside")
	}
	return nil
}

// chooseScratch decides where stage and aside are: in the work folder, if entries can be renamed between it and the
// tree, and else in a hidden folder of the tree. The work folder records that one first.
func (r *run) chooseScratch() error {
	if err := r.work.RemoveAll("stage"); err != nil {
		return err
	}
	now, err := r.root.Lstat(".")
	if err != nil {
		return err
	}
	r.j.Root = now
	aside, err := nextAside(r.work)
	if err != nil {
		return err
	}
	r.j.Aside = aside
	if !reachable(r.work, r.root, now) {
		r.j.Hidden = ".drover-apply-" + rand.Text()
		if err := r.j.write(r.work.Dir(), staging); err != nil {
			return err
		}
		if err := r.root.Mkdir(r.j.Hidden, 0o700); err != nil {
			r.j.Hidden = "" // not ours
			return err
		}
	}
	r.useScratch()
	return r.scratch.Mkdir(r.stage(""), 0o700)
}

// reachable reports whether one root allows renames into the other. The kernel checks that before it looks for entries.
func reachable(work, root *filetree.Root, top filetree.Entry) bool {
	w, err := work.Lstat(".")
	if err != nil || w.Stamp.Dev != top.Stamp.Dev {
		return false
	}
	const nothing = ".drover-nothing"
	return !errors.Is(work.MoveNew(nothing, root, nothing), errCrossDevice)
}

func nextAside(work *filetree.Root) (string, error) {
	if err := work.MkdirAll("aside", 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(filepath.Join(work.Dir(), "aside"))
	if err != nil {
		return "", err
	}
	next := 1
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			next = max(next, n+1)
		}
	}
	name := "aside/" + strconv.Itoa(next)
	return name, work.Mkdir(name, 0o700)
}

// prepare does everything that needs no change to the tree, up to the journal.
func (r *run) prepare(ctx context.Context, steps []Step) error {
	p := newPlanner(r.root, r.j, r.work.Dir())
	if err := p.plan(steps); err != nil {
		return err
	}
	if r.j.AllOrNothing {
		if err := p.strangers(ctx); err != nil {
			return err
		}
	}
	if err := r.unsurprised(); err != nil {
		return err
	}
	for _, o := range r.j.Ops {
		if err := errors.Join(ctx.Err(), r.fault("stage", o.Path)); err != nil {
			return err
		}
		if err := r.stageOne(o); err != nil {
			return fmt.Errorf("applytree: %q: %w", o.Path, err)
		}
	}
	if err := r.lookAgain(); err != nil {
		return err
	}
	return r.enter(applying)
}

// unsurprised refuses a plan that is all or nothing, if something is wrong with it.
func (r *run) unsurprised() error {
	if !r.j.AllOrNothing || len(r.j.Notes) == 0 {
		return nil
	}
	n := r.j.Notes[0]
	return fmt.Errorf("%w: %q %s", ErrSurprise, n.Path, n.Reason)
}

// lookAgain finds what changed while contents were staged, which may have taken long.
func (r *run) lookAgain() error {
	if !r.j.AllOrNothing {
		return nil
	}
	for _, o := range r.j.Ops {
		if o.Covered {
			continue
		}
		now, err := look(r.root, o.Path)
		if err != nil {
			return err
		}
		if reason := difference(o.Now, now); reason != "" {
			r.j.Notes = append(r.j.Notes, note{Conflict{Path: o.Path, Reason: reason}, true})
		}
	}
	return r.unsurprised()
}

// stageOne makes in the stage folder what is to be renamed into the tree.
func (r *run) stageOne(o *op) error {
	if o.Stage == "" || o.From != "" {
		return nil
	}
	if err := r.makeStaged(o); err != nil {
		return err
	}
	if o.Want.Kind != filetree.Dir { // whose mode may forbid to fill it
		if err := r.scratch.SetMeta(at(o.Want, r.stage(o.Stage))); err != nil {
			return err
		}
	}
	staged, err := r.scratch.Lstat(r.stage(o.Stage))
	if err == nil && staged.Size != o.Want.Size {
		err = fmt.Errorf("its content has %d bytes instead of %d", staged.Size, o.Want.Size)
	}
	o.Staged = staged
	return err
}

func (r *run) makeStaged(o *op) error {
	path := r.stage(o.Stage)
	switch o.Want.Kind {
	case filetree.Dir:
		return r.scratch.Mkdir(path, 0o700)
	case filetree.Link:
		return r.scratch.Symlink(o.Want.Target, path)
	case filetree.Pipe:
		return r.scratch.Mkfifo(path, 0o600)
	}
	f, err := r.scratch.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(o.write(f), f.Close())
}

// refusal is the result of a plan that was not begun.
func (r *run) refusal() Result {
	res := Result{Undone: true}
	for _, n := range r.j.Notes {
		res.Conflicts = append(res.Conflicts, Conflict{Path: n.Path, Reason: n.Reason})
	}
	return res
}

// abandon removes what was prepared for a plan that was not begun.
func (r *run) abandon() error {
	if _, err := os.Lstat(filepath.Join(r.work.Dir(), string(applying))); !errors.Is(err, fs.ErrNotExist) {
		return advice.Wrap(fmt.Errorf("applytree: the journal may have been written: %w", err), "call Recover")
	}
	return r.clean(staging)
}
