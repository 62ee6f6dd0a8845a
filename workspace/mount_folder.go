// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/internal/filetree"
)

// storeSuffix ends the name of the folder beside a workspace that has its checkpoints, where the agent does
// not reach them.
const storeSuffix = ".store"

// A folder is the place of a workspace on disk.
type folder struct {
	parent *filetree.Root
	name   string
}

func newFolder(opts *Options) (*folder, error) {
	f, err := makeFolder(opts)
	if err != nil {
		return nil, fmt.Errorf("workspace: making the folder: %w\n  next: set TempDir to a folder that this user may write to", err)
	}
	return f, nil
}

func makeFolder(opts *Options) (*folder, error) {
	parent := opts.TempDir
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
	root, err := filetree.Open(parent)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, opts.Prefix)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &folder{root, filepath.Base(dir)}, nil
}

func (f *folder) path() string { return filepath.Join(f.parent.Dir(), f.name) }

func (f *folder) store() string { return f.path() + storeSuffix }

// close removes the checkpoints, and the folder too unless it is kept.
func (f *folder) close(keep bool) error {
	err := f.parent.RemoveAll(f.name + storeSuffix)
	if !keep {
		err = errors.Join(err, f.parent.RemoveAll(f.name))
	}
	if err = errors.Join(err, f.parent.Close()); err != nil {
		return fmt.Errorf("workspace: removing %s: %w\n  next: remove it by hand", f.path(), err)
	}
	return nil
}
