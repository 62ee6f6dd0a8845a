// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/drover-agents/drover/workspace"
)

// ReadOnly returns a view of a file system in which every change is refused with [fs.ErrPermission].
func ReadOnly(fsys FS) FS { return readOnly{fsys} }

type readOnly struct{ FS }

var errViewOnly = &refusal{"is in a read-only file system", fs.ErrPermission}

func (readOnly) WriteFile(name string, _ []byte, _ *WriteOptions) error {
	return pathError("write", name, errViewOnly)
}
func (readOnly) Mkdir(name string) error     { return pathError("mkdir", name, errViewOnly) }
func (readOnly) Remove(name string) error    { return pathError("remove", name, errViewOnly) }
func (readOnly) Rename(name, _ string) error { return pathError("rename", name, errViewOnly) }

// A Recorder is a view of a file system that keeps in mind what was changed through it. Several of them
// may be over one file system: each call of a tool has its own.
type Recorder struct {
	FS
	mu      sync.Mutex
	written map[string]bool
}

// NewRecorder returns a view of a file system that keeps in mind what was changed through it.
func NewRecorder(fsys FS) *Recorder { return &Recorder{FS: fsys, written: map[string]bool{}} }

// Written are the names that were written, made, removed or renamed through this view, sorted, without links on their way:
// what was written through a link is named where it is. Folders that were made for a file are among them, what is below a
// folder that was removed or renamed is not. Changes that were refused are not among them; those that failed half-way are.
func (r *Recorder) Written() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.written))
}

// WriteFile writes a file.
func (r *Recorder) WriteFile(name string, data []byte, opts *WriteOptions) error {
	touched := r.making(name, true)
	return r.keep(touched, r.FS.WriteFile(name, data, opts))
}

// Mkdir makes a folder and those above it.
func (r *Recorder) Mkdir(name string) error {
	touched := r.making(name, true)
	if len(touched) > 0 && r.isFolder(touched[0]) {
		touched = touched[1:] // is there already
	}
	return r.keep(touched, r.FS.Mkdir(name))
}

// Remove removes a file, a link, or a folder with everything in it.
func (r *Recorder) Remove(name string) error {
	touched := r.resolved(name, false)
	return r.keep(touched, r.FS.Remove(name))
}

// Rename moves a file, a link or a folder.
func (r *Recorder) Rename(oldName, newName string) error {
	touched := append(r.resolved(oldName, false), r.making(newName, false)...)
	return r.keep(touched, r.FS.Rename(oldName, newName))
}

// keep remembers names unless the change was refused.
func (r *Recorder) keep(names []string, err error) error {
	if isRefused(err) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		r.written[name] = true
	}
	return err
}

// isRefused reports an error that comes before any change. After an error of the system, something may have changed.
func isRefused(err error) bool {
	_, ours := errors.AsType[*refusal](err)
	return ours || errors.Is(err, workspace.ErrSecurity) || errors.Is(err, ErrLimit) ||
		errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist)
}

func (r *Recorder) resolved(name string, last bool) []string {
	if checkName("", name) != nil {
		return nil
	}
	name, err := resolve(r.FS, name, last)
	if err != nil {
		return nil
	}
	return []string{name}
}

func (r *Recorder) making(name string, last bool) []string {
	names := r.resolved(name, last)
	if names == nil {
		return nil
	}
	for dir := path.Dir(names[0]); dir != "." && !r.isFolder(dir); dir = path.Dir(dir) {
		names = append(names, dir)
	}
	return names
}

func (r *Recorder) isFolder(name string) bool {
	info, err := r.Lstat(name)
	return err == nil && info.IsDir()
}
