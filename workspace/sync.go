// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/drover-agents/drover/session"
)

// Synced is what a [Sync] has dispatched to a session.
type Synced struct {
	// Created, Changed and Deleted are the paths of files, in order.
	Created []string `json:"created"`
	Changed []string `json:"changed"`
	Deleted []string `json:"deleted"`
	// Count is how many files are new or changed.
	Count int `json:"count"`
}

// views are what a workspace knows of the sessions that have its files in their [VirtualFileSystem].
type views struct {
	mu        sync.Mutex
	mounted   *VirtualFileSystem // as it was at the base; nil until it is needed
	ofSession map[*session.Session]*view
}

// A view is the last state of the slice that was dispatched to a session. If the slice differs, because the session
// was rolled back or another caller dispatched, all files are compared.
type view struct {
	dispatched VirtualFileSystem
	at         *Checkpoint
}

// Sync dispatches to a session the changes in the files of a workspace since the last Sync: a [WriteFile] for each
// file that is new or differs in content or permissions, and a [DeleteFile] for each that is gone. Its cost depends
// on the changes, not on the size of the workspace. After an error, the dispatched events stay, and the next Sync
// dispatches the rest.
func Sync(ctx context.Context, s *session.Session, w *Workspace) (Synced, error) {
	if w.tree == nil {
		return Synced{}, ErrNoCheckpoints
	}
	w.views.mu.Lock()
	defer w.views.mu.Unlock()
	v, err := w.viewOfLocked(ctx, s)
	if err != nil {
		return Synced{}, err
	}
	now, err := w.tree.Checkpoint(ctx)
	if err != nil {
		return Synced{}, err
	}
	synced, err := v.dispatch(ctx, s, w.tree, now)
	if err != nil {
		now.Release()
		return synced, fmt.Errorf("workspace: syncing files with the session: %w", err)
	}
	if v.at != w.base {
		v.at.Release()
	}
	v.at = now
	v.dispatched, _ = session.Query[VirtualFileSystem](s).Latest()
	return synced, nil
}

// seedView gives a session the files as they were mounted, all of version 1. [Open] calls it when there is
// a session; for any other session the first Sync does.
func seedView(ctx context.Context, s *session.Session, w *Workspace) error {
	w.views.mu.Lock()
	defer w.views.mu.Unlock()
	mounted, err := w.mountedLocked(ctx, s)
	if err != nil {
		return err
	}
	if w.views.ofSession[s] == nil {
		registerFiles(s)
	}
	if err := session.Seed(ctx, s, mounted); err != nil {
		return fmt.Errorf("workspace: recording the mounted files in the session: %w", err)
	}
	w.views.ofSession[s] = &view{dispatched: mounted, at: w.base}
	return nil
}

// viewOfLocked is the view of a session, which gets the mounted files first if it has none.
func (w *Workspace) viewOfLocked(ctx context.Context, s *session.Session) (*view, error) {
	if v := w.views.ofSession[s]; v != nil {
		return v, nil
	}
	mounted, err := w.mountedLocked(ctx, s)
	if err != nil {
		return nil, err
	}
	registerFiles(s)
	if _, ok := session.Query[VirtualFileSystem](s).Latest(); !ok {
		if err := session.Seed(ctx, s, mounted); err != nil {
			return nil, err
		}
	}
	v := &view{dispatched: mounted, at: w.base}
	w.views.ofSession[s] = v
	return v, nil
}

// Mounted are the files as they were when the workspace was opened, all of version 1.
func (w *Workspace) Mounted(ctx context.Context) (VirtualFileSystem, error) {
	if w.tree == nil {
		return VirtualFileSystem{}, ErrNoCheckpoints
	}
	w.views.mu.Lock()
	defer w.views.mu.Unlock()
	return w.mountedLocked(ctx, nil)
}

func (w *Workspace) mountedLocked(ctx context.Context, s *session.Session) (VirtualFileSystem, error) {
	if w.views.mounted != nil {
		return *w.views.mounted, nil
	}
	files, err := w.base.Files()
	if err != nil {
		return VirtualFileSystem{}, err
	}
	at := w.created
	if s != nil {
		at = s.Now()
	}
	mounted, err := virtualFiles(ctx, files, at)
	if err != nil {
		return VirtualFileSystem{}, err
	}
	w.views.mounted = &mounted
	return mounted, nil
}

// dispatch dispatches the differences between the slice of a session and the tree at a checkpoint.
func (v *view) dispatch(ctx context.Context, s *session.Session, tree *Tree, now *Checkpoint) (Synced, error) {
	known, _ := session.Query[VirtualFileSystem](s).Latest()
	changed, err := v.changed(tree, known, now)
	if err != nil {
		return Synced{}, err
	}
	var synced Synced
	for _, c := range changed {
		if err := synced.dispatch(ctx, s, known, c); err != nil {
			return synced, err
		}
	}
	return synced, nil
}

// changed are the paths that may differ, and what is there now.
func (v *view) changed(tree *Tree, known VirtualFileSystem, now *Checkpoint) ([]Change, error) {
	if known.files.Same(v.dispatched.files) {
		return tree.Changes(v.at, now)
	}
	files, err := now.Files()
	if err != nil {
		return nil, err
	}
	var all []Change
	present := map[string]bool{}
	for _, f := range files {
		present[f.Path] = true
		all = append(all, Change{Path: f.Path, After: f})
	}
	for f := range known.All() {
		if path := f.Path.String(); !present[path] {
			all = append(all, Change{Path: path})
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return Path{a.Path}.Compare(Path{b.Path}) })
	return all, nil
}

// dispatch dispatches the event for one path, if there is one, and counts it.
func (r *Synced) dispatch(ctx context.Context, s *session.Session, known VirtualFileSystem, c Change) error {
	path, err := ParsePath(c.Path)
	if err != nil {
		return err
	}
	old, had := known.Get(path)
	if c.After == nil || !c.After.Mode.IsRegular() {
		if !had {
			return nil
		}
		r.Deleted = append(r.Deleted, c.Path)
		_, err := s.Dispatch(ctx, DeleteFile{path})
		return err
	}
	f := c.After
	if had && old.Hash == f.Hash && old.Mode == f.Mode.Perm() {
		return nil
	}
	encoding := old.Encoding
	if old.Hash != f.Hash {
		if encoding, err = encodingOf(f); err != nil {
			return err
		}
	}
	e := WriteFile{path, f.Hash, f.Size, FileCreated, encoding, f.Mode.Perm(), s.Now()}
	if had {
		e.Mode = FileOverwritten
		r.Changed = append(r.Changed, c.Path)
	} else {
		r.Created = append(r.Created, c.Path)
	}
	r.Count++
	_, err = s.Dispatch(ctx, e)
	return err
}

// Modified returns the files that differ from the mounted ones, in order, and the paths of those that are gone, as of the
// last [Sync]. A file counts if it is new, if its content or permissions differ, or if they differed in between.
func Modified(s *session.Session, w *Workspace) (files []VirtualFile, deleted []Path, err error) {
	mounted, err := w.Mounted(context.Background())
	if err != nil {
		return nil, nil, err
	}
	now, _ := session.Query[VirtualFileSystem](s).Latest()
	for f := range now.All() {
		if old, had := mounted.Get(f.Path); !had || f.Version > 1 || f.Hash != old.Hash || f.Mode != old.Mode {
			files = append(files, f)
		}
	}
	for f := range mounted.All() {
		if _, there := now.Get(f.Path); !there {
			deleted = append(deleted, f.Path)
		}
	}
	return files, deleted, nil
}
