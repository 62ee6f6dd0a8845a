// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"log/slog"
)

// TreeOptions configures [OpenTree]. Nil and the zero value are ready to use.
type TreeOptions struct {
	// Store is the folder for contents and for what a rollback puts aside. It must not be in the tree.
	// Empty makes one in TempDir, which Close removes.
	Store string
	// TempDir is where a store is made. Empty means [os.TempDir].
	TempDir string
	// MaxDisk bounds the bytes that the store takes on disk. Zero means 4 GiB.
	MaxDisk int64
	// NoWatch leaves out the file watcher: every checkpoint then looks at every file.
	NoWatch bool
	// Logger hears of full checks and of what could not be removed. Nil discards that.
	Logger *slog.Logger
}

// A Tree is a folder of which checkpoints can be taken, and which can be rolled back to them. It is safe
// for concurrent use.
type Tree struct{ dir string }

// A Checkpoint is the state of a tree at one moment.
type Checkpoint struct{ tree *Tree }

// Usage is what the checkpoints of a tree take on disk, and what was needed to keep them.
type Usage struct {
	// Disk is what the store takes, in bytes: Contents and Aside together.
	Disk, Contents, Aside int64
	// Limit is TreeOptions.MaxDisk.
	Limit int64
	// Files is how many entries the tree has.
	Files int
	// Checkpoints is how many are not released.
	Checkpoints int
	// FullChecks counts the looks at every file, FastChecks those at what the watcher named.
	FullChecks, FastChecks int64
	// Watching reports whether there is a watcher; WatchProblem says why there is none.
	Watching     bool
	WatchProblem string
}

// RollbackOptions narrows a rollback. Nil and the zero value roll everything back.
type RollbackOptions struct {
	// Only are the paths to roll back, each with everything below it. Nil means all.
	Only []string
	// Keep reports a path that stays as it is: another call has changed it. Nil keeps none.
	Keep func(path string) bool
}

// RolledBack says what a rollback did.
type RolledBack struct {
	// Restored are the paths that are again what they were, sorted.
	Restored []string `json:"restored"`
	// Kept are those that had changed and were left, because of RollbackOptions.
	Kept []string `json:"kept,omitempty"`
	// Conflicts are those that could not be put back, or that somebody changed while they were.
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// Aside is the folder in which everything lies that the rollback took out of the tree, under its
	// path. It stays until the tree is closed or the room is needed.
	Aside string `json:"aside,omitzero"`
}

// A Conflict is a path on which two sides differ. Neither is lost.
type Conflict struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	// Aside is where the side lies that is not in the tree. Empty if there is none.
	Aside string `json:"aside,omitzero"`
}

var errNotYet = errors.New("workspace: not built yet")

// OpenTree opens a folder. A rollback that a crash has cut short is brought to its end first.
func OpenTree(dir string, opts *TreeOptions) (*Tree, error) { return nil, errNotYet }

// Dir is the folder.
func (t *Tree) Dir() string { return t.dir }

// Checkpoint keeps the state of the tree as it is now.
func (t *Tree) Checkpoint(ctx context.Context) (*Checkpoint, error) { return nil, errNotYet }

// Changes are the paths that differ between two checkpoints, sorted by path.
func (t *Tree) Changes(from, to *Checkpoint) ([]Change, error) { return nil, errNotYet }

// Rollback makes the tree what it was at the checkpoint, which stays.
func (t *Tree) Rollback(ctx context.Context, to *Checkpoint, opts *RollbackOptions) (RolledBack, error) {
	return RolledBack{}, errNotYet
}

// Usage is what the tree takes at the moment.
func (t *Tree) Usage() Usage { return Usage{} }

// Close forgets all checkpoints. The tree stays as it is.
func (t *Tree) Close() error { return errNotYet }

// Files are all entries at the checkpoint, sorted by path; the root is not among them.
func (c *Checkpoint) Files() ([]*File, error) { return nil, errNotYet }

// Release gives up the checkpoint. What only it needed is removed.
func (c *Checkpoint) Release() {}
