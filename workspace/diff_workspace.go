// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"io"
)

// Changes returns the paths that differ from the mounted ones, sorted by path. Their contents can be read until the
// caller calls release, also if the workspace changes meanwhile.
func (w *Workspace) Changes(ctx context.Context) (changes []Change, release func(), err error) {
	if w.tree == nil {
		return nil, nil, ErrNoCheckpoints
	}
	now, err := w.tree.Checkpoint(ctx)
	if err != nil {
		return nil, nil, err
	}
	changes, err = w.tree.Changes(w.base, now)
	if err != nil {
		now.Release()
		return nil, nil, err
	}
	return changes, now.Release, nil
}

// Patch writes the changes of the workspace since it was mounted as [WritePatch] does, and returns their summary.
// Paths begin with those of the mounts: git apply -p2 takes one with a single segment off.
func (w *Workspace) Patch(ctx context.Context, out io.Writer, opts *DiffOptions) (Summary, error) {
	return w.show(ctx, func(changes []Change) error { return WritePatch(out, changes, opts) })
}

// Diff writes the changes of the workspace since it was mounted as [WriteDiff] does, and returns their summary.
func (w *Workspace) Diff(ctx context.Context, out io.Writer, opts *DiffOptions) (Summary, error) {
	return w.show(ctx, func(changes []Change) error { return WriteDiff(out, changes, opts) })
}

func (w *Workspace) show(ctx context.Context, write func([]Change) error) (Summary, error) {
	changes, release, err := w.Changes(ctx)
	if err != nil {
		return Summary{}, err
	}
	defer release()
	return Summarize(changes), write(changes)
}
