// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/workspace/internal/applytree"
	"github.com/drover-agents/drover/workspace/internal/filetree"
	"github.com/drover-agents/drover/workspace/internal/objects"
	"github.com/drover-agents/drover/workspace/internal/treewatch"
)

// TreeOptions configures [OpenTree]. Nil and the zero value are ready to use.
type TreeOptions struct {
	// Store is the folder for contents and for files that a rollback puts aside. It must not be in the tree. Empty
	// makes one in TempDir, which Close removes.
	Store string
	// TempDir is where a store is made. Empty means [os.TempDir].
	TempDir string
	// MaxDisk bounds the bytes that the store takes on disk. Sides of conflicts stay even beyond it. Zero means 4 GiB.
	MaxDisk int64
	// NoWatch leaves out the file watcher: every checkpoint then looks at every file.
	NoWatch bool
	// Logger receives full checks, and files that could not be removed. Nil discards them.
	Logger *slog.Logger
}

// ErrBusy is when a folder is already open as a tree, in another program or in this one.
var ErrBusy = errors.New("workspace: the folder is in use")

// A Tree is a folder of which checkpoints can be taken, and which can be rolled back to them. It is safe for
// concurrent use: one call at a time reads or changes the files, and the others wait.
//
// A file that is written while a checkpoint is taken is stored as it was at some moment of it.
type Tree struct {
	dir  string
	opts TreeOptions
	log  *slog.Logger

	// turn is held by the goroutine that uses the fields below. It is a channel, so that a wait can end with a context.
	turn    chan struct{}
	closed  bool
	root    *filetree.Root
	store   *treeStore
	objects *objects.Store
	history *history
	// racy, hot and loose paths are checked each time, regardless of their stamps. unread has files, and shut has
	// folders, of unknown content.
	racy, hot, loose paths
	unread, shut     map[string]error
	// opened are files that a process may have open for writing. A write through a mapping changes the stamp of
	// such a file, but causes no event.
	opened    paths
	askAtOnce int
	// full means that the index may be wrong anywhere.
	full                   bool
	fullChecks, fastChecks int64
	// unfinished means that a rollback was begun and could not be finished.
	unfinished bool
	// stamps means that on this device, every write leaves a trace in the stamp of the file.
	stamps bool
	dev    uint64

	watch        *treewatch.Watcher // nil without a watcher
	watchOptions treewatch.Options
	watchProblem string
}

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
	// Watching reports whether there is a watcher; WatchProblem is why the watcher is missing.
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

// RolledBack is the result of a rollback.
type RolledBack struct {
	// Restored are the paths that are again what they were, sorted.
	Restored []string `json:"restored"`
	// Kept are those that had changed and were left, because of RollbackOptions.
	Kept []string `json:"kept,omitempty"`
	// Conflicts are the paths that could not be restored, or that changed meanwhile.
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// Aside is the folder with everything that the rollback took out of the tree, under its path. It stays until
	// the room is needed or, unless TreeOptions.Store is set, the tree is closed. Empty if nothing was taken out,
	// or if there was no room to keep it.
	Aside string `json:"aside,omitzero"`
}

// A Conflict is a path on which two sides differ. Neither is lost.
type Conflict struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	// Aside is the path of the side that is not in the tree. Empty if there is no such side.
	Aside string `json:"aside,omitzero"`
}

// OpenTree opens a folder. A rollback that a crash has cut short is brought to its end first.
func OpenTree(dir string, opts *TreeOptions) (*Tree, error) {
	t := &Tree{
		turn: make(chan struct{}, 1), full: true, askAtOnce: askAtOnce,
		racy: paths{}, hot: paths{}, loose: paths{}, opened: paths{}, unread: map[string]error{}, shut: map[string]error{},
	}
	if opts != nil {
		t.opts = *opts
	}
	t.opts.TempDir = cmp.Or(t.opts.TempDir, os.TempDir())
	t.opts.MaxDisk = cmp.Or(t.opts.MaxDisk, 4<<30)
	t.opts.Logger = safelog.Logger(t.opts.Logger)
	t.log = t.opts.Logger
	t.history = newHistory(t.drop)
	if err := t.open(dir); err != nil {
		return nil, errors.Join(err, t.free())
	}
	return t, nil
}

func (t *Tree) open(dir string) (err error) {
	if t.dir, err = realPath(dir); err != nil {
		return fmt.Errorf("workspace: opening the tree %s: %w", dir, err)
	}
	if t.root, err = filetree.Open(t.dir); err != nil {
		return fmt.Errorf("workspace: opening the tree %s: %w", dir, err)
	}
	top, err := t.root.Lstat(".")
	if err != nil {
		return fmt.Errorf("workspace: opening the tree %s: %w", dir, err)
	}
	t.dev, t.stamps = top.Stamp.Dev, stampsTell(t.dir)
	if t.store, err = openTreeStore(t.dir, &t.opts); err != nil {
		return err
	}
	if err := t.recover(); err != nil {
		return err
	}
	t.objects, err = objects.Open(t.store.objects(), &objects.Options{MaxBytes: t.opts.MaxDisk})
	return err
}

// recover ends what a crash cut short. Until it succeeds, the store has what is not in the tree.
func (t *Tree) recover() error {
	result, cut, err := applytree.Recover(t.root, t.store.work())
	t.unfinished, t.store.needed = err != nil, err != nil
	if err != nil {
		return fmt.Errorf("workspace: finishing an earlier rollback of %s, with what it took out of it in %s: %w", t.dir, t.store.work(), err)
	}
	if cut {
		t.log.Warn("finished a rollback that a crash had cut short", "dir", t.dir, "restored", len(result.Done), "aside", result.Aside)
		t.store.keepAside(result.Aside, len(result.Conflicts) > 0)
	}
	return nil
}

func realPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// Dir is the folder.
func (t *Tree) Dir() string { return t.dir }

var errTreeClosed = fmt.Errorf("workspace: the tree is closed: %w", fs.ErrClosed)

// lock waits until the tree is unused.
func (t *Tree) lock(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if t.closed {
		t.unlock()
		return errTreeClosed
	}
	return nil
}

func (t *Tree) unlock() { <-t.turn }

// begin is lock for readers of files. It ends an unfinished rollback, and fails if the folder was moved or replaced.
func (t *Tree) begin(ctx context.Context) error {
	if err := t.lock(ctx); err != nil {
		return err
	}
	err := t.inPlace()
	if err == nil && t.unfinished {
		err = t.recover()
	}
	if err != nil {
		t.unlock()
	}
	return err
}

func (t *Tree) inPlace() error {
	there, err := filetree.Open(t.dir)
	if err != nil {
		return fmt.Errorf("workspace: the tree %s is not there any more: %w", t.dir, err)
	}
	defer there.Close()
	now, errNow := there.Lstat(".")
	mine, errMine := t.root.Lstat(".")
	if err := errors.Join(errNow, errMine); err != nil {
		return fmt.Errorf("workspace: looking at the tree %s: %w", t.dir, err)
	}
	if now.Stamp.Ino != mine.Stamp.Ino || now.Stamp.Dev != mine.Stamp.Dev {
		return advice.Wrap(fmt.Errorf("workspace: %s is another folder than the one that was opened as a tree", t.dir),
			"move that one back, or open this one")
	}
	return nil
}

func (t *Tree) drop(it *item) {
	if it.Kind == filetree.File && !it.loose {
		t.objects.Release(it.hash)
	}
}

// Usage is what the tree takes at the moment.
func (t *Tree) Usage() Usage {
	if t.lock(context.Background()) != nil {
		return Usage{Limit: t.opts.MaxDisk}
	}
	defer t.unlock()
	_, disk := t.objects.Usage()
	aside := t.store.asideBytes()
	return Usage{
		Disk: disk + aside, Contents: disk, Aside: aside, Limit: t.opts.MaxDisk,
		Files: max(0, len(t.history.now)-1), Checkpoints: len(t.history.versions), // the root is not an entry
		FullChecks: t.fullChecks, FastChecks: t.fastChecks,
		Watching: t.watch != nil, WatchProblem: t.watchProblem,
	}
}

// Close forgets all checkpoints. The tree stays as it is. Closing twice is harmless.
func (t *Tree) Close() error {
	if err := t.lock(context.Background()); err != nil {
		return nil //nolint:nilerr // it is closed
	}
	defer t.unlock()
	t.closed = true
	var err error
	if t.unfinished {
		err = t.recover()
	}
	return errors.Join(err, t.free())
}

func (t *Tree) free() error {
	var errs []error
	if t.watch != nil {
		errs = append(errs, t.watch.Close())
	}
	if t.objects != nil {
		errs = append(errs, t.objects.Close())
	}
	if t.store != nil {
		errs = append(errs, t.store.close())
	}
	if t.root != nil {
		errs = append(errs, t.root.Close())
	}
	return errors.Join(errs...)
}
