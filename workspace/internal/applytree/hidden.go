// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// leaveTree removes the hidden folder from the tree, if there is one, and sets the root's time once more. Entries
// aside there are copied to the work folder first.
func (r *run) leaveTree(s state) error {
	if r.j.Hidden == "" {
		return nil
	}
	if s != staging {
		if err := r.carryAside(); err != nil {
			return err
		}
	}
	if err := r.change("leave tree", "", func() error { return r.root.RemoveAll(r.j.Hidden) }); err != nil {
		return err
	}
	top := &r.j.Root
	for _, f := range r.j.Folders {
		if f.path() == "." && s == applied && f.After != nil {
			top = f.After
		}
	}
	return r.root.SetMeta(at(top, "."))
}

// carryAside copies the entries aside from the tree's file system to the work folder, under another name until complete.
func (r *run) carryAside() error {
	there, err := r.work.ReadDir(r.j.Aside)
	if err != nil && !filetree.Absent(err) || len(there) > 0 {
		return err
	}
	entries, err := r.scratch.Walk(context.Background(), &filetree.WalkOptions{From: r.aside(".")})
	if filetree.Absent(err) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	part := r.j.Aside + ".part"
	if err := errors.Join(r.work.RemoveAll(part), r.work.Mkdir(part, 0o700)); err != nil {
		return err
	}
	for _, e := range entries {
		to := part + strings.TrimPrefix(e.Path, r.aside("."))
		if err := r.change("carry", e.Path, func() error { return copyEntry(r.scratch, e, r.work, to) }); err != nil {
			return err
		}
	}
	for _, e := range slices.Backward(entries) {
		if e.Kind == filetree.Dir {
			if err := r.work.SetMeta(at(&e, part+strings.TrimPrefix(e.Path, r.aside(".")))); err != nil {
				return err
			}
		}
	}
	return r.work.MoveTo(part, r.work, r.j.Aside)
}

// copyEntry copies one entry. Sockets and devices cannot be copied, and are useless elsewhere.
func copyEntry(from *filetree.Root, e filetree.Entry, to *filetree.Root, p string) error {
	switch e.Kind {
	case filetree.Dir:
		return to.Mkdir(p, 0o700)
	case filetree.Link:
		if err := to.Symlink(e.Target, p); err != nil {
			return err
		}
	case filetree.Pipe:
		if err := to.Mkfifo(p, 0o600); err != nil {
			return err
		}
	case filetree.File:
		if err := copyContent(from, e.Path, to, p); err != nil {
			return err
		}
	default:
		return nil
	}
	return to.SetMeta(at(&e, p))
}

func copyContent(from *filetree.Root, path string, to *filetree.Root, p string) error {
	src, _, err := from.OpenFile(path)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := to.Create(p)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
