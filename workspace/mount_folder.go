// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/internal/leftover"
)

const (
	// storeSuffix ends the name of the folder beside a workspace that has its checkpoints, where the
	// agent does not reach them.
	storeSuffix = ".store"
	markerText  = "The folder of this name without .lock is a workspace of Drover, and that with .store has its checkpoints.\n" +
		"All are removed when the workspace is closed, or by a later one when the program was killed.\n"
)

// A folder is the place of a workspace on disk.
type folder struct {
	root, store string
	remove      func() error
}

func newFolder(opts *Options) (*folder, error) {
	if strings.ContainsAny(opts.Prefix, `/\`) {
		return nil, fmt.Errorf("workspace: the prefix %q is no beginning of a name\n  next: set TempDir to choose the folder", opts.Prefix)
	}
	kind := leftover.Kind{Prefix: opts.Prefix, Text: markerText, Beside: []string{storeSuffix}}
	sweep(kind, opts)
	made := makeMarked
	if opts.KeepOnClose {
		made = makeKept
	}
	f, err := made(kind, opts.TempDir)
	if err != nil {
		return nil, fmt.Errorf("workspace: making the folder: %w\n  next: set TempDir to a folder that this user may write to", err)
	}
	return f, nil
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

func makeMarked(kind leftover.Kind, parent string) (*folder, error) {
	made, err := kind.Make(parent)
	if err != nil {
		return nil, err
	}
	return &folder{made.Path(), made.Beside(storeSuffix), made.Remove}, nil
}

// makeKept makes a folder that no sweep removes: whoever wants to keep it wants that most of all when the
// program was killed.
func makeKept(kind leftover.Kind, parent string) (*folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp(parent, kind.Prefix)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(root)
	f := &folder{root: root, store: root + storeSuffix}
	f.remove = func() error { return errors.Join(removeTree(parent, name), removeTree(parent, name+storeSuffix)) }
	if err := os.Mkdir(f.store, 0o700); err != nil {
		return nil, errors.Join(err, os.Remove(root))
	}
	return f, nil
}

// close removes the checkpoints, and the folder too unless it is kept.
func (f *folder) close(keep bool) (err error) {
	if keep {
		err = removeTree(filepath.Dir(f.store), filepath.Base(f.store))
	} else {
		err = f.remove()
	}
	if err != nil {
		return fmt.Errorf("workspace: removing %s: %w\n  next: remove it by hand", f.root, err)
	}
	return nil
}
