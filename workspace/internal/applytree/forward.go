// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

func (r *run) execute() (Result, error) {
	r.index()
	err := r.forward()
	if err == nil && r.hold {
		return r.result(), nil
	}
	if err == nil {
		err = r.enter(applied)
	}
	switch {
	case err != nil && r.j.AllOrNothing:
		return r.takeBack(err)
	case err != nil:
		return r.result(), advice.Wrap(err, "call Recover")
	}
	err = r.clean(applied)
	return r.result(), err
}

func (r *run) forward() error {
	for _, phase := range []struct {
		backwards bool
		do        func(o *op) error
	}{
		{false, r.pull},
		{true, r.displace},
		{false, r.inspect},
		{false, r.moveIn},
		{false, r.link},
		{false, r.setMeta},
		{false, r.checkLink},
	} {
		if err := r.each(phase.backwards, phase.do); err != nil {
			return err
		}
	}
	return r.setFolders(func(f folder) *filetree.Entry { return f.After })
}

// pull moves a file from elsewhere in the tree to the stage.
func (r *run) pull(o *op) error {
	if o.From == "" {
		return nil
	}
	if !r.staged(o) {
		now, err := look(r.root, o.From)
		switch {
		case err != nil:
			return r.trouble(o, err)
		case r.again && (now == nil || !sameInode(&o.Staged, now)):
			return nil // it is in already, which moveIn checks
		case now != nil && r.again && !untouched(&o.Staged, now) && !hasContent(r.root, o.From, o.Hash):
			return r.trouble(o, errors.New("the file that was to be moved here was changed meanwhile"))
		case now == nil || !r.again && !untouched(&o.Staged, now):
			return r.stageInstead(o)
		}
		if err := r.change("pull", o.From, func() error { return r.root.MoveNew(o.From, r.scratch, r.stage(o.Stage)) }); err != nil {
			return r.trouble(o, err)
		}
	}
	if err := r.scratch.SetMeta(at(o.Want, r.stage(o.Stage))); err != nil {
		return r.trouble(o, err)
	}
	return nil
}

// stageInstead writes the content of a file that was to be moved, but was touched.
func (r *run) stageInstead(o *op) error {
	if err := r.surprise(o.From, "was changed meanwhile", ""); err != nil {
		return err
	}
	o.From = ""
	if err := r.stageOne(o); err != nil {
		return r.trouble(o, err)
	}
	return nil
}

func (r *run) displace(o *op) error {
	if !o.Displace || r.again && r.displaced(o) {
		return nil
	}
	now, err := look(r.root, o.Path)
	if err != nil {
		return r.trouble(o, err)
	}
	if now == nil {
		if r.moved[o.Path] || o.Want == nil && !r.j.AllOrNothing {
			return nil
		}
		return r.surprise(o.Path, "was removed meanwhile", "")
	}
	reason := difference(o.Now, now)
	if reason != "" && r.j.AllOrNothing {
		return r.surprise(o.Path, reason, "")
	}
	if err := r.change("displace", o.Path, func() error { return r.moveAside(o.Path) }); err != nil {
		return r.trouble(o, err)
	}
	after, err := look(r.scratch, r.aside(o.Path))
	if reason == "" && (err != nil || after == nil || !sameMoved(now, after)) {
		reason = "was changed meanwhile"
	}
	if reason != "" {
		return r.surprise(o.Path, reason, r.named(o.Path))
	}
	return nil
}

func sameMoved(before, after *filetree.Entry) bool {
	if before.Kind == filetree.Dir {
		return after.Kind == filetree.Dir && sameInode(before, after)
	}
	return sameFile(before, after)
}

// displaced reports whether an earlier attempt came so far.
func (r *run) displaced(o *op) bool {
	if o.Stage != "" && !r.staged(o) || r.exists(r.scratch, r.aside(o.Path)) {
		return true
	}
	now, err := look(r.root, o.Path)
	return err == nil && now != nil && !sameInode(now, o.Now) && o.Link != "" && r.linked(o)
}

func (r *run) moveAside(p string) error {
	if err := r.makeAside(path.Dir(p)); err != nil {
		return err
	}
	return r.root.MoveNew(p, r.scratch, r.aside(p))
}

// inspect finds entries that the plan did not expect in a folder put aside. By its old path none can be added now.
func (r *run) inspect(o *op) error {
	if !o.Displace || !isKind(o.Now, filetree.Dir) {
		return nil
	}
	if e, err := look(r.scratch, r.aside(o.Path)); err != nil || !isKind(e, filetree.Dir) {
		return nil // displace has reported it
	}
	options := &filetree.WalkOptions{From: r.aside(o.Path), NoXattrs: true}
	entries, err := r.scratch.Walk(context.Background(), options)
	if err != nil {
		if err := r.surprise(o.Path, "could not be looked at: "+err.Error(), r.named(o.Path)); err != nil {
			return err
		}
	}
	for i := range entries {
		p := strings.TrimPrefix(entries[i].Path, r.aside(".")+"/")
		if reason := strange(r.ops[p], &entries[i]); reason != "" {
			if err := r.surprise(p, reason, r.named(p)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) moveIn(o *op) error {
	if o.Stage == "" {
		return nil
	}
	if r.again && !r.staged(o) {
		return r.placedBefore(o)
	}
	return r.moveInto(o, func() error {
		return r.change("place", o.Path, func() error { return r.scratch.MoveNew(r.stage(o.Stage), r.root, o.Path) })
	})
}

// placedBefore checks a file that was to be moved: it may be gone meanwhile.
func (r *run) placedBefore(o *op) error {
	if o.From == "" || r.exists(r.root, o.Path) {
		return nil
	}
	return r.trouble(o, errors.New("the file that was to be moved here is gone"))
}

// moveInto puts an entry at a path. An entry that appeared there since it was cleared is a surprise.
func (r *run) moveInto(o *op, put func() error) error {
	for range 100 {
		err := put()
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return r.trouble(o, err)
		}
		if err := r.clear(o.Path); err != nil {
			return err
		}
	}
	return r.trouble(o, fs.ErrExist)
}

// clear moves an unexpected entry of a path aside.
func (r *run) clear(p string) error {
	const reason = "was made meanwhile"
	if r.j.AllOrNothing && !r.back {
		return r.surprise(p, reason, "")
	}
	kept, err := r.keep(r.root, p, p)
	if err != nil {
		return nil // the step that needs the path will fail in the same way
	}
	return r.surprise(p, reason, kept)
}

func (r *run) link(o *op) error {
	if o.Link == "" || r.again && r.linked(o) {
		return nil
	}
	if leader := r.ops[o.Link]; leader != nil && leader.skip {
		return r.trouble(o, fmt.Errorf("the file it is a hard link to, %q, is not what it was", o.Link))
	}
	return r.moveInto(o, func() error {
		return r.change("link", o.Path, func() error { return r.root.Link(o.Link, o.Path) })
	})
}

func (r *run) linked(o *op) bool {
	a, errA := look(r.root, o.Path)
	b, errB := look(r.root, o.Link)
	return errA == nil && errB == nil && a != nil && b != nil && sameInode(a, b)
}

// checkLink looks at what the new name leads to: the other name is not always part of the plan.
func (r *run) checkLink(o *op) error {
	if o.Link == "" {
		return nil
	}
	now, err := look(r.root, o.Path)
	if err == nil && (now == nil || now.Size != o.Want.Size || now.ModTime != o.Want.ModTime || now.Perm != o.Want.Perm) {
		err = fmt.Errorf("%w: the file it is a hard link to, %q, is not what it was", ErrSurprise, o.Link)
	}
	if err != nil {
		return r.trouble(o, err)
	}
	return nil
}

// setMeta sets permissions, owner and times of something that keeps its content.
func (r *run) setMeta(o *op) error {
	if !o.Meta {
		return nil
	}
	now, err := look(r.root, o.Path)
	if err != nil {
		return r.trouble(o, err)
	}
	if now == nil || !r.stillOurs(o, now) {
		return r.trouble(o, fmt.Errorf("%w: it was changed meanwhile, and is left as it is", ErrSurprise))
	}
	if err := r.change("meta", o.Path, func() error { return r.root.SetMeta(at(o.Want, o.Path)) }); err != nil {
		return r.trouble(o, err)
	}
	return nil
}

// stillOurs reports whether the content is unchanged. We may have set its time, under another name or before a crash.
func (r *run) stillOurs(o *op, now *filetree.Entry) bool {
	if !r.again && !r.back && o.Now.Stamp.Links == 1 && now.Stamp.Links == 1 {
		return untouched(o.Now, now)
	}
	early, late := *o.Now, *o.Now
	late.ModTime = o.Want.ModTime
	return sameFile(&early, now) || sameFile(&late, now)
}

// setFolders gives folders their modes and times, those within before those around.
func (r *run) setFolders(choose func(folder) *filetree.Entry) error {
	for _, f := range slices.Backward(r.j.Folders) {
		want := choose(f)
		if want == nil {
			continue
		}
		err := r.change("folder", f.path(), func() error { return r.root.SetMeta(at(want, f.path())) })
		switch {
		case err == nil:
		case r.j.AllOrNothing && !(r.back && replaced(err)):
			return fmt.Errorf("applytree: %q: %w", f.path(), err)
		default:
			r.note(note{Conflict{Path: f.path(), Reason: err.Error()}, true})
		}
	}
	return nil
}
