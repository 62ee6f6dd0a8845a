// SPDX-License-Identifier: Apache-2.0

package files

import (
	"io"

	"github.com/drover-agents/drover/workspace"
)

// Of returns a workspace as a file system for tools, with the usual limits. It is the same one every time, so that
// all who append to a file take turns; a [Recorder] over it lists the writes of one of them. It can be used until
// the workspace is closed.
func Of(w *workspace.Workspace) (FS, error) {
	attached, err := w.Attach(attachedKey{}, func() (io.Closer, error) { return OpenDirFS(w.Root(), nil) })
	if err != nil {
		return nil, err
	}
	return heldFS{attached.(*DirFS), w}, nil
}

type attachedKey struct{}

// A heldFS has the workspace, so that its folder is not removed while the file system is reachable.
type heldFS struct {
	*DirFS
	w *workspace.Workspace
}
