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
	"strconv"
	"strings"
	"syscall"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

var errCrossDevice error = syscall.EXDEV

// testFault, if a test sets it, is called before everything that changes something, and may fail or die.
var testFault func(what, path string) error

type run struct {
	root, work *filetree.Root
	// scratch holds stage and aside: the work folder, or the tree itself with prefix as a hidden folder.
	scratch *filetree.Root
	prefix  string
	j       *journal
	state   state
	hold    bool // the journal stays when all is applied
	// again means that a crash came before: each operation may have been done already.
	again bool
	// back means that the plan is being undone.
	back  bool
	notes []note
	ops   map[string]*op
	// moved are the paths from which files are moved within the tree.
	moved map[string]bool
	// made are the folders that exist below aside.
	made map[string]bool
}

func newRun(root, work *filetree.Root, j *journal) *run {
	r := &run{root: root, work: work, j: j, made: map[string]bool{}}
	r.useScratch()
	return r
}

// index is done when the journal is complete.
func (r *run) index() {
	r.ops, r.moved = map[string]*op{}, map[string]bool{}
	for _, o := range r.j.Ops {
		r.ops[o.Path] = o
		if o.From != "" {
			r.moved[o.From] = true
		}
	}
	for _, n := range append(slices.Clone(r.j.Notes), r.notes...) {
		if o := r.ops[n.Path]; o != nil && n.Failed && !r.j.AllOrNothing { // which undoes them all
			o.skip = true
		}
	}
}

func (r *run) useScratch() {
	r.scratch, r.prefix = r.work, ""
	if r.j.Hidden != "" {
		r.scratch, r.prefix = r.root, r.j.Hidden+"/"
	}
}

// stage and aside are paths in scratch.
func (r *run) stage(name string) string { return path.Join(r.prefix+"stage", name) }

func (r *run) aside(p string) string {
	return path.Join(r.prefix+"aside", strings.TrimPrefix(r.j.Aside, "aside/"), p)
}

// named is the final path of an entry that was put aside, for people.
func (r *run) named(p string) string {
	return filepath.Join(r.work.Dir(), filepath.FromSlash(r.j.Aside), filepath.FromSlash(p))
}

func (r *run) fault(what, path string) error {
	if testFault == nil {
		return nil
	}
	return testFault(what, path)
}

// change does something that tests can make fail.
func (r *run) change(what, path string, do func() error) error {
	if err := r.fault(what, path); err != nil {
		return err
	}
	return do()
}

func (r *run) enter(to state) error {
	if err := r.fault("enter", string(to)); err != nil {
		return err
	}
	dir := r.work.Dir()
	if to == applying {
		if err := r.j.write(dir, applying); err != nil {
			return err
		}
	} else if err := os.Rename(filepath.Join(dir, string(r.state)), filepath.Join(dir, string(to))); err != nil {
		return fmt.Errorf("applytree: journal: %w", err)
	}
	r.state = to
	return nil
}

// note keeps a conflict, also for the case of a crash. A full disk must not stop what is under way.
func (r *run) note(n note) {
	r.notes = append(r.notes, n)
	_ = addNote(r.work.Dir(), n)
}

// surprise is something that the plan did not expect. It ends a plan that is all or nothing.
func (r *run) surprise(path, reason, aside string) error {
	if r.j.AllOrNothing && !r.back {
		return fmt.Errorf("%w: %q %s", ErrSurprise, path, reason)
	}
	r.note(note{Conflict{path, reason, aside}, false})
	return nil
}

// trouble handles an operation that failed. The staged entry of the path goes aside, so that it is not lost, and the
// displaced one comes back, if it can.
func (r *run) trouble(o *op, err error) error {
	if r.j.AllOrNothing {
		return fmt.Errorf("applytree: %q: %w", o.Path, err)
	}
	o.skip = true
	n := note{Conflict{Path: o.Path, Reason: err.Error()}, true}
	if o.Stage != "" && r.exists(r.scratch, r.stage(o.Stage)) {
		if kept, keepErr := r.keep(r.scratch, r.stage(o.Stage), o.Path); keepErr == nil {
			n.Aside = kept
		}
	}
	if o.Displace && r.exists(r.scratch, r.aside(o.Path)) {
		_ = r.scratch.MoveNew(r.aside(o.Path), r.root, o.Path) // else it stays aside
	}
	r.note(n)
	return nil
}

// keep moves an entry aside under a free name, and returns its path for people.
func (r *run) keep(from *filetree.Root, what, p string) (string, error) {
	for n := 1; ; n++ {
		name := path.Join(".drover-conflict-"+strconv.Itoa(n), p)
		if err := r.makeAside(path.Dir(name)); err != nil {
			if errors.Is(err, fs.ErrExist) {
				continue
			}
			return "", err
		}
		err := from.MoveNew(what, r.scratch, r.aside(name))
		if !errors.Is(err, fs.ErrExist) {
			return r.named(name), err
		}
	}
}

func (r *run) makeAside(dir string) error {
	if r.made[dir] {
		return nil
	}
	err := r.scratch.MkdirAll(r.aside(dir), 0o700)
	r.made[dir] = err == nil
	return err
}

func (r *run) exists(in *filetree.Root, path string) bool {
	_, err := in.Lstat(path)
	return err == nil
}

// staged reports whether an op's new entry still waits in the stage folder.
func (r *run) staged(o *op) bool { return o.Stage != "" && r.exists(r.scratch, r.stage(o.Stage)) }

// each runs an operation for all paths, those in folders after the folders or, backwards, before them.
func (r *run) each(backwards bool, do func(o *op) error) error {
	for i := range r.j.Ops {
		o := r.j.Ops[i]
		if backwards {
			o = r.j.Ops[len(r.j.Ops)-1-i]
		}
		if o.skip {
			continue
		}
		if err := do(o); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) result() Result {
	res := Result{Undone: r.state == undone}
	failed, seen := map[string]bool{}, map[Conflict]bool{}
	for _, n := range append(slices.Clone(r.j.Notes), r.notes...) {
		failed[n.Path] = failed[n.Path] || n.Failed
		if n.Aside != "" && !pathExists(n.Aside) {
			n.Aside = ""
		}
		if !seen[n.Conflict] {
			seen[n.Conflict] = true
			res.Conflicts = append(res.Conflicts, n.Conflict)
		}
	}
	slices.SortStableFunc(res.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
	for _, o := range r.j.Ops {
		if !res.Undone && !failed[o.Path] {
			res.Done = append(res.Done, o.Path)
		}
	}
	if dir := r.named("."); pathExists(dir) {
		res.Aside = dir
	}
	return res
}

func pathExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
