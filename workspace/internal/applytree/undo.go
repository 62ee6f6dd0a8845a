// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// takeBack undoes a plan that is all or nothing, because of some trouble.
func (r *run) takeBack(cause error) (Result, error) {
	if r.state == applying {
		if err := r.enter(undoing); err != nil {
			cause = errors.Join(cause, err) // Recover undoes in either state
		}
	}
	if err := r.undo(); err != nil {
		return r.result(), advice.Wrap(fmt.Errorf("%w\n  and not everything could be undone: %w", cause, err), "call Recover")
	}
	return r.result(), cause
}

// undo brings back what was there before. It checks how far each path went, so that it may be killed and called again.
func (r *run) undo() error {
	r.back, r.again = true, true
	var errs []error
	for _, phase := range []struct {
		backwards bool
		do        func(o *op) error
	}{
		{true, r.unlink},
		{true, r.takeOut},
		{false, r.putBack},
		{false, r.moveBack},
		{false, r.resetMeta},
	} {
		errs = append(errs, r.each(phase.backwards, func(o *op) error {
			if err := phase.do(o); replaced(err) {
				r.note(note{Conflict{o.Path, "could not be put back: " + err.Error(), r.named(o.Path)}, true})
			} else if err != nil {
				errs = append(errs, fmt.Errorf("%q: %w", o.Path, err))
			}
			return nil
		}))
	}
	errs = append(errs, r.setFolders(func(f folder) *filetree.Entry { return f.Before }))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := r.enter(undone); err != nil {
		return err
	}
	return r.clean(undone)
}

// replaced reports an error that no further attempt would fix: another program took the path, or the folder that it
// is in. The entry for the path stays aside.
func replaced(err error) bool { return filetree.Absent(err) || errors.Is(err, filetree.ErrKind) }

// returned reports whether what an op displaced is where it was.
func (r *run) returned(o *op) bool { return o.Displace && !r.exists(r.scratch, r.aside(o.Path)) }

func (r *run) unlink(o *op) error {
	if o.Link == "" || r.returned(o) || !r.linked(o) {
		return nil
	}
	leader, err := look(r.root, o.Link)
	if err != nil || leader == nil {
		return err
	}
	out, err := r.freeStage()
	if err != nil {
		return err
	}
	if err := r.change("unlink", o.Path, func() error { return r.root.MoveNew(o.Path, r.scratch, out) }); err != nil {
		return err
	}
	now, err := look(r.scratch, out)
	if err != nil || now == nil || sameInode(now, leader) {
		return err
	}
	return r.rescue(out, o.Path)
}

func (r *run) freeStage() (string, error) {
	for n := 0; ; n++ {
		name := r.stage("out-" + strconv.Itoa(n))
		if e, err := look(r.scratch, name); err != nil || e == nil {
			return name, err
		}
	}
}

// takeOut moves the entry of moveIn, or another that replaced it, back to the stage.
func (r *run) takeOut(o *op) error {
	if o.Stage == "" || r.staged(o) || r.returned(o) {
		return nil
	}
	now, err := look(r.root, o.Path)
	if err != nil || now == nil {
		return err
	}
	if o.From != "" && !sameInode(now, &o.Staged) {
		return nil
	}
	return r.change("take out", o.Path, func() error { return r.root.MoveNew(o.Path, r.scratch, r.stage(o.Stage)) })
}

func (r *run) putBack(o *op) error {
	if !o.Displace || r.returned(o) {
		return r.resetReturned(o)
	}
	err := r.intoFree(o.Path, func() error {
		return r.change("put back", o.Path, func() error { return r.scratch.MoveNew(r.aside(o.Path), r.root, o.Path) })
	})
	return errors.Join(err, r.resetReturned(o))
}

// resetReturned sets the mode of what was displaced, which renaming it may have changed for the moment.
func (r *run) resetReturned(o *op) error {
	if !o.Displace {
		return nil
	}
	now, err := look(r.root, o.Path)
	if err != nil || now == nil || !sameMoved(o.Now, now) || now.Same(*o.Now) {
		return err
	}
	return r.root.SetMeta(at(o.Now, o.Path))
}

func (r *run) moveBack(o *op) error {
	if o.From == "" {
		return nil
	}
	if r.staged(o) {
		err := r.intoFree(o.From, func() error {
			return r.change("move back", o.From, func() error { return r.scratch.MoveNew(r.stage(o.Stage), r.root, o.From) })
		})
		if replaced(err) {
			return r.rescue(r.stage(o.Stage), o.From)
		}
		if err != nil {
			return err
		}
	}
	now, err := look(r.root, o.From)
	if err != nil || now == nil || !sameInode(now, &o.Staged) || now.Size != o.Staged.Size {
		return err
	}
	return r.root.SetMeta(at(&o.Staged, o.From))
}

// intoFree puts an entry back. An entry at its path goes aside.
func (r *run) intoFree(p string, put func() error) error {
	err := put()
	for try := 0; errors.Is(err, fs.ErrExist) && try < 100; try++ {
		if err := r.clear(p); err != nil {
			return err
		}
		err = put()
	}
	return err
}

func (r *run) resetMeta(o *op) error {
	if !o.Meta {
		return nil
	}
	now, err := look(r.root, o.Path)
	if err != nil || now == nil || !r.stillOurs(o, now) {
		return err
	}
	return r.change("reset", o.Path, func() error { return r.root.SetMeta(at(o.Now, o.Path)) })
}

// rescueAll keeps what is in the stage folder and not ours: what undoing took out of the tree though we did
// not put it there like this, and files of the tree that were on their way from one path to another.
func (r *run) rescueAll(s state) error {
	if s == staging {
		return nil // nothing of it was ever in the tree
	}
	for _, o := range r.j.Ops {
		if o.Stage == "" || s == applied && o.From == "" {
			continue
		}
		now, err := look(r.scratch, r.stage(o.Stage))
		if err == nil && now != nil && (o.From != "" || !r.unchanged(o, now)) {
			err = r.rescue(r.stage(o.Stage), o.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) unchanged(o *op, now *filetree.Entry) bool {
	if now.Kind != filetree.Dir {
		return sameFile(&o.Staged, now)
	}
	entries, err := r.scratch.ReadDir(r.stage(o.Stage))
	return err == nil && len(entries) == 0 && o.Staged.Kind == filetree.Dir
}

func (r *run) rescue(from, p string) error {
	kept, err := r.keep(r.scratch, from, p)
	if err != nil {
		return err
	}
	r.note(note{Conflict{p, "was changed meanwhile", kept}, true})
	return nil
}
