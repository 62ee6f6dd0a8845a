// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/leftover"
)

const (
	// storeSuffix ends the name of the folder with the checkpoints, beside the workspace, out of the agent's reach.
	storeSuffix = ".store"
	markerText  = "The folder of this name without .lock is a workspace of Drover, and that with .store has its checkpoints.\n" +
		"All are removed when the workspace is closed, or by a later one when the program was killed.\n"
)

type folder struct {
	*leftover.Folder
	kept atomic.Bool
}

func newFolder(opts *Options) (*folder, error) {
	if strings.ContainsAny(opts.Prefix, `/\`) {
		return nil, advice.Wrap(fmt.Errorf("workspace: the prefix %q is no beginning of a name", opts.Prefix), "set TempDir to choose the folder")
	}
	kind := leftover.Kind{Prefix: opts.Prefix, Former: []string{formerPrefix}, Text: markerText, Beside: []string{storeSuffix}}
	sweep(kind, opts)
	made, err := kind.Make(opts.TempDir)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("workspace: making the folder: %w", err), "set TempDir to a folder that this user may write to")
	}
	return &folder{Folder: made}, nil
}

// sweep removes what killed programs have left. If it cannot, the next workspace tries again.
func sweep(kind leftover.Kind, opts *Options) {
	swept, err := kind.Sweep(opts.TempDir)
	if err != nil {
		opts.Logger.Warn("looking for workspaces of killed programs", "error", err)
	}
	for _, old := range swept {
		if old.Err != nil {
			opts.Logger.Warn("removing the workspace of a killed program", "folder", old.Path, "error", old.Err)
		}
	}
}

func (f *folder) store() string { return f.Beside(storeSuffix) }

// keep also protects the folder from every sweep: the user needs it most of all when the program was killed.
func (f *folder) keep() error {
	f.kept.Store(true)
	return f.Keep()
}

// close removes the folder with its checkpoints. If the folder is kept, only the checkpoints are removed, and files
// that rollbacks have put aside stay with it.
func (f *folder) close() error {
	var err error
	if f.kept.Load() {
		err = f.removeCheckpoints()
	} else {
		err = f.Remove()
	}
	if err != nil {
		return advice.Wrap(fmt.Errorf("workspace: removing %s: %w", f.Path(), err), "remove it by hand")
	}
	return nil
}

func (f *folder) removeCheckpoints() error {
	if found, _ := filepath.Glob(filepath.Join(f.store(), "work", "aside", "*")); len(found) == 0 {
		return removeTree(filepath.Dir(f.store()), filepath.Base(f.store()))
	}
	return removeTree(f.store(), "objects")
}
