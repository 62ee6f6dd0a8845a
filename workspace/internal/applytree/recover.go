// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// Recover handles a crash in [Apply] or in Recover itself, and reports whether there was one. It finishes an ordinary plan.
// It undoes a plan that is all or nothing: Apply did not report its success, and the file system still has everything for
// that. The tree is then wholly as before, or, if only the cleanup was left, wholly as wanted.
func Recover(root *filetree.Root, work string) (Result, bool, error) {
	return reopen(root, work, (*run).resume)
}

func reopen(root *filetree.Root, work string, goOn func(*run) (Result, error)) (Result, bool, error) {
	work, err := filepath.Abs(work)
	if err != nil {
		return Result{}, false, err
	}
	w, err := filetree.Open(work)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, err
	}
	defer w.Close()
	j, s, err := readJournal(work)
	if err != nil {
		return Result{}, true, err
	}
	if s == none {
		return Result{}, false, newRun(root, w, &journal{}).clean(none)
	}
	if now, err := root.Lstat("."); err != nil || !sameInode(&j.Root, &now) {
		return Result{}, true, fmt.Errorf("applytree: the journal in %s is about another folder than %s (%w)", work, root.Dir(), err)
	}
	r := newRun(root, w, j)
	r.state, r.again, r.notes = s, true, readNotes(work)
	r.index()
	res, err := goOn(r)
	return res, true, err
}

func (r *run) resume() (Result, error) {
	switch {
	case r.state == staging:
		return Result{Undone: true}, r.clean(staging)
	case r.state == applied || r.state == undone:
		r.back = r.state == undone
		err := r.clean(r.state)
		return r.result(), err
	case r.j.AllOrNothing:
		err := r.undo()
		return r.result(), err
	}
	if err := r.each(false, r.checkStaged); err != nil {
		return r.result(), err
	}
	return r.execute()
}

// checkStaged leaves a path alone if its staged content did not survive, and puts the earlier entry back.
func (r *run) checkStaged(o *op) error {
	if o.Hash == "" || !isKind(o.Want, filetree.File) || !r.staged(o) || r.pulled(o) {
		return nil
	}
	o.From = "" // stageInstead was at work
	if hasContent(r.scratch, r.stage(o.Stage), o.Hash) {
		return nil
	}
	o.skip = true
	if err := r.scratch.Remove(r.stage(o.Stage)); err != nil {
		return err
	}
	r.note(note{Conflict{Path: o.Path, Reason: "what was staged for it is damaged; it is left as it was"}, true})
	if o.Displace && !r.returned(o) {
		return r.intoFree(o.Path, func() error { return r.scratch.MoveNew(r.aside(o.Path), r.root, o.Path) })
	}
	return nil
}

// pulled reports whether what is staged is the file that was to be moved.
func (r *run) pulled(o *op) bool {
	now, err := look(r.scratch, r.stage(o.Stage))
	return o.From != "" && err == nil && now != nil && sameInode(now, &o.Staged)
}

// clean removes what is only ours, and the journal after everything that it is needed for.
func (r *run) clean(s state) error {
	if err := r.rescueAll(s); err != nil {
		return err
	}
	err := r.change("clean stage", "", func() error { return r.scratch.RemoveAll(r.stage("")) })
	if err != nil && !filetree.Absent(err) { // it was in a hidden folder that is gone already
		return err
	}
	if s == undone {
		r.prune()
	}
	if err := r.leaveTree(s); err != nil {
		return err
	}
	if r.j.Aside != "" {
		_ = r.work.Remove(r.j.Aside) // only if nothing is in it
	}
	// Notes without a journal mean nothing; a journal without its notes would.
	for _, name := range []string{newJournal, string(s), string(staging), notesFile} {
		err := r.fault("clean", name)
		if name != "" && err == nil {
			err = os.Remove(filepath.Join(r.work.Dir(), name))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// prune removes the folders below aside that are empty after everything was put back.
func (r *run) prune() {
	for _, o := range slices.Backward(r.j.Ops) {
		for p := path.Dir(o.Path); p != "."; p = path.Dir(p) {
			if r.scratch.Remove(r.aside(p)) != nil {
				break
			}
		}
	}
}
