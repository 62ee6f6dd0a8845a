// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"io/fs"
	"sync"
)

// FS is the workspace as a file system for tools, with the usual limits. It is the same one every time, so
// that all who append to a file take turns; a [Recorder] over it tells apart what each of them wrote. It
// can be used until the workspace is closed.
func (w *Workspace) FS() (FS, error) {
	fsys, err := w.holdings.files.open(w.root)
	if err != nil {
		return nil, err
	}
	return heldFS{fsys, w}, nil
}

// A heldFS has the workspace, so that the folder is not taken for forgotten while somebody has the files.
type heldFS struct {
	*DirFS
	w *Workspace
}

// A sharedFS is a file system that is opened when it is first asked for.
type sharedFS struct {
	once sync.Once
	fs   *DirFS
	err  error
}

func (s *sharedFS) open(dir string) (*DirFS, error) {
	s.once.Do(func() { s.fs, s.err = OpenDirFS(dir, nil) })
	return s.fs, s.err
}

func (s *sharedFS) close() {
	s.once.Do(func() { s.err = fs.ErrClosed })
	if s.fs != nil {
		_ = s.fs.Close() // a handle on a folder has nothing to lose
	}
}
