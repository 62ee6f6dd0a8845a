// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"

	"github.com/drover-agents/drover/internal/filetree"
	"github.com/drover-agents/drover/internal/treewatch"
)

// watchAgain watches every folder, before all of them are read. Without a watcher nothing else changes:
// every check is then a full one.
func (r *refresh) watchAgain(ctx context.Context) error {
	t := r.tree
	if t.opts.NoWatch {
		t.watchProblem = "TreeOptions.NoWatch"
		return nil
	}
	if t.watch == nil {
		w, err := treewatch.New(t.dir, &t.watchOptions)
		if err != nil {
			t.stopWatching(err)
			return nil
		}
		t.watch, t.watchProblem = w, ""
	}
	entries, err := t.root.Walk(ctx, &filetree.WalkOptions{NoXattrs: true})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("workspace: looking at %s: %w", t.dir, context.Cause(ctx))
	}
	if err := addFolders(t.watch, entries); err != nil {
		t.stopWatching(err)
	}
	return nil
}

func addFolders(w *treewatch.Watcher, entries []filetree.Entry) error {
	for i := range entries {
		if entries[i].Kind != filetree.Dir {
			continue
		}
		if err := w.Add(entries[i].Path); err != nil {
			return err
		}
	}
	return nil
}

// stopWatching goes on without a watcher. It is tried again at the next full check, which is the next.
func (t *Tree) stopWatching(err error) {
	if t.watch != nil {
		_ = t.watch.Close()
		t.watch = nil
	}
	if problem := err.Error(); problem != t.watchProblem {
		t.watchProblem = problem
		t.log.Warn("no file watcher: every file is looked at each time", "dir", t.dir, "err", err)
	}
}
