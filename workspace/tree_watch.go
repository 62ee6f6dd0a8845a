// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/filetree"
	"github.com/drover-agents/drover/workspace/internal/treewatch"
)

// watchAgain watches every folder before all of them are read. Without a watcher every check is a full one.
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
	if err := r.addFolders(ctx); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("workspace: looking at %s: %w", t.dir, context.Cause(ctx))
		}
		t.stopWatching(err)
	}
	return nil
}

// addFolders adds each folder before the walk opens it: later entries are reported, and the walk finds the earlier
// ones, and adds them in turn.
func (r *refresh) addFolders(ctx context.Context) error {
	var mu sync.Mutex
	var failed error
	_, err := r.tree.root.Walk(ctx, &filetree.WalkOptions{NoXattrs: true, Skip: func(e filetree.Entry) bool {
		if e.Kind != filetree.Dir {
			return true
		}
		if err := r.tree.watch.Add(e.Path); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = cmp.Or(failed, err) // the first is enough
			return true
		}
		return false
	}})
	if ctx.Err() != nil {
		return err
	}
	return failed
}

// stopWatching goes on without a watcher. It is tried again at the next full check, which is the next.
func (t *Tree) stopWatching(err error) {
	if t.watch != nil {
		_ = t.watch.Close()
		t.watch = nil
	}
	if problem := advice.Text(err); problem != t.watchProblem {
		t.watchProblem = problem
		t.log.Warn("no file watcher: every file is looked at each time", "dir", t.dir, "err", err)
	}
}
