// SPDX-License-Identifier: Apache-2.0

package files

import (
	"io"

	"github.com/drover-agents/drover/workspace"
)

// Of returns a workspace as a file system for tools, with the usual limits. It is the same one every time, so
// that all who append to a file take turns; a [Recorder] over it tells apart what each of them wrote. It
// can be used until the workspace is closed.
func Of(w *workspace.Workspace) (FS, error) {
	attached, err := w.Attach(attachedKey{}, func() (io.Closer, error) { return OpenDirFS(w.Root(), nil) })
	if err != nil {
		return nil, err
	}
	return heldFS{attached.(*DirFS), w}, nil
}

type attachedKey struct{}

// A heldFS has the workspace, so that the folder is not taken for forgotten while somebody has the files.
type heldFS struct {
	*DirFS
	w *workspace.Workspace
}
