// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/filetree"
	"github.com/drover-agents/drover/workspace/internal/objects"
)

// A Checkpoint is the state of a tree at one moment. It lasts until it is released, the tree is closed or the program ends.
type Checkpoint struct {
	tree *Tree
	id   int64
}

// ErrReleased is when a checkpoint is used after [Checkpoint.Release].
var ErrReleased = advice.Wrap(errors.New("workspace: the checkpoint was released"), "take another, and keep it as long as it is needed")

// Checkpoint stores the present state of the tree. An entry that cannot be read is an error that names it.
func (t *Tree) Checkpoint(ctx context.Context) (*Checkpoint, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	defer t.unlock()
	if err := t.capture(ctx); err != nil {
		return nil, err
	}
	return &Checkpoint{tree: t, id: t.history.take()}, nil
}

// capture brings the index up to date, with all contents in the store.
func (t *Tree) capture(ctx context.Context) error {
	if err := (&refresh{tree: t}).run(ctx); err != nil {
		return err
	}
	t.boundAside()
	for _, unread := range []map[string]error{t.unread, t.shut} {
		for _, p := range slices.Sorted(maps.Keys(unread)) {
			return t.readError(p, unread[p])
		}
	}
	return nil
}

// readError is about a path whose content could not be kept.
func (t *Tree) readError(p string, err error) error {
	if full, ok := errors.AsType[*objects.FullError](err); ok {
		return &BudgetError{Path: p, Bytes: full.Used + full.Size, Limit: full.Limit, Store: true}
	}
	failure := fmt.Errorf("workspace: %q in %s cannot be kept: %w", p, t.dir, err)
	if errors.Is(err, fs.ErrPermission) {
		return advice.Wrap(failure, "let this user read it, or remove it")
	}
	return failure
}

// version finds a checkpoint of this tree.
func (t *Tree) version(c *Checkpoint) error {
	if c == nil || c.tree != t {
		return advice.Wrap(errors.New("workspace: the checkpoint is of another tree"), "ask the tree that it was taken of")
	}
	if _, ok := t.history.find(c.id); !ok {
		return ErrReleased
	}
	return nil
}

// Changes are the paths that differ between two checkpoints, sorted by path. The root is not among them.
func (t *Tree) Changes(from, to *Checkpoint) ([]Change, error) {
	if err := t.lock(context.Background()); err != nil {
		return nil, err
	}
	defer t.unlock()
	if err := errors.Join(t.version(from), t.version(to)); err != nil {
		return nil, err
	}
	differences := t.history.between(from.id, to.id)
	delete(differences, ".")
	changes := make([]Change, 0, len(differences))
	for _, p := range slices.Sorted(maps.Keys(differences)) {
		d := differences[p]
		changes = append(changes, Change{Path: p, Before: t.file(d.from), After: t.file(d.to)})
	}
	return changes, nil
}

// Files are all entries at the checkpoint, sorted by path; the root is not among them.
func (c *Checkpoint) Files() ([]*File, error) {
	t := c.tree
	if err := t.lock(context.Background()); err != nil {
		return nil, err
	}
	defer t.unlock()
	if err := t.version(c); err != nil {
		return nil, err
	}
	all := t.history.at(c.id)
	delete(all, ".")
	files := make([]*File, 0, len(all))
	for _, p := range slices.Sorted(maps.Keys(all)) {
		files = append(files, t.file(all[p]))
	}
	return files, nil
}

// Release gives up the checkpoint, and removes the contents that only it needs. Releasing twice is harmless.
func (c *Checkpoint) Release() {
	if c.tree.lock(context.Background()) != nil {
		return
	}
	defer c.tree.unlock()
	c.tree.history.release(c.id)
}

// file is an item as others see it, nil for nil.
func (t *Tree) file(it *item) *File {
	if it == nil {
		return nil
	}
	f := &File{
		Path: it.Path, Mode: it.Kind.Type() | it.Perm, Size: it.Size,
		ModTime: time.Unix(0, it.ModTime), Target: it.Target,
	}
	if it.Kind == filetree.File {
		hash := it.hash
		f.Hash = hash.String()
		f.open = func() (io.ReadCloser, error) { return t.openContent(f.Path, hash) }
	}
	return f
}

func (t *Tree) openContent(p string, hash objects.Hash) (io.ReadCloser, error) {
	content, err := t.objects.Open(hash)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: p, Err: err}
	}
	return content, nil
}
