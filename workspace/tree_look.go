// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/drover-agents/drover/workspace/internal/filetree"
	"github.com/drover-agents/drover/workspace/internal/objects"
	"github.com/drover-agents/drover/workspace/internal/treewatch"
)

// A reason is how closely a path has to be checked.
type reason uint8

const (
	// byStamp: an entry whose stamp is the same is the same.
	byStamp reason = 0
	// byContent: the content may differ though the stamp does not.
	byContent reason = 1 << iota
	// byOpening: a process may have the file open, and write to it without a further event.
	byOpening
	// isFile: it was a file a moment ago, so it can be opened without a look at what it is.
	isFile
)

type found struct {
	path string
	// item is nil if there is nothing. It is also nil if the index has it already.
	item *item
	same bool
	// racy entries may be written without a trace within the tick of the clock, and hot ones at any time, because a
	// process has them open.
	racy, hot bool
	// shut means that the writers of the file were queried.
	shut bool
	// err is why the content cannot be read.
	err error
}

// maxTries is how often a file is read that changes while it is. Then it counts as hot.
const maxTries = 3

// lookAll looks at many paths at once. It fails only if nothing is known then; the error of one path is in its found.
func (r *refresh) lookAll(ctx context.Context, todo map[string]reason) ([]found, error) {
	list := slices.AppendSeq(make([]string, 0, len(todo)), maps.Keys(todo))
	results := make([]found, len(list))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; int(i) < len(list) && ctx.Err() == nil; i = next.Add(1) - 1 {
			results[i] = r.look(ctx, list[i], todo[list[i]])
		}
	}
	if workers := min(runtime.GOMAXPROCS(0)*2, len(list)/8); workers > 1 {
		var wg sync.WaitGroup
		for range workers {
			wg.Go(work)
		}
		wg.Wait()
	} else {
		work()
	}
	r.settle()
	if r.watchErr != nil && r.tree.watch != nil {
		r.tree.stopWatching(r.watchErr)
	}
	if ctx.Err() != nil {
		for _, f := range results { // what was read in vain
			if f.item != nil {
				r.tree.drop(f.item)
			}
		}
		return nil, context.Cause(ctx)
	}
	for i := range results {
		results[i].hot = results[i].hot || r.unsettled[results[i].path]
	}
	return results, nil
}

func (r *refresh) look(ctx context.Context, p string, why reason) found {
	old := r.tree.history.now[p]
	if why&isFile != 0 && old == nil {
		looked := time.Now()
		if f, again := r.read(ctx, filetree.Entry{Path: p}, nil, why, false); !again && f.err == nil {
			f.racy = f.item != nil && filetree.Racy(f.item.Entry, looked)
			return f
		}
	}
	why &^= isFile
	for try := 1; ; try++ {
		looked := time.Now()
		e, err := r.tree.root.Lstat(p)
		switch {
		case filetree.Absent(err):
			return found{path: p}
		case errors.Is(err, syscall.EMFILE) && try < maxTries:
			r.settle() // which closes files
			continue
		case err != nil:
			return found{path: p, same: true, err: err}
		case e.Kind != filetree.File:
			return notAFile(e, old, filetree.Racy(e, looked))
		case why == byStamp && old.isStill(e):
			return found{path: p, same: true}
		}
		f, again := r.read(ctx, e, old, why, try == maxTries)
		if !again {
			f.racy = f.item != nil && filetree.Racy(f.item.Entry, looked) || filetree.Racy(e, looked)
			return f
		}
	}
}

// isStill reports whether the entry is unchanged since the item was made.
func (it *item) isStill(e filetree.Entry) bool {
	return it != nil && !it.loose && it.Untouched(e)
}

func notAFile(e filetree.Entry, old *item, racy bool) found {
	if old != nil && old.Untouched(e) {
		return found{path: e.Path, same: true, racy: racy}
	}
	return found{path: e.Path, item: &item{Entry: e}, racy: racy}
}

// read reads a file. Again means that the file became another meanwhile; it is never set the last time.
//
// read looks for writers that have the file open before it reads the content. A mapping that begins later
// leaves a trace in the stamp when it is first written to.
func (r *refresh) read(ctx context.Context, e filetree.Entry, old *item, why reason, last bool) (got found, again bool) {
	followed := r.follow(e.Path)
	file, opened, err := r.tree.root.OpenFile(e.Path)
	if err != nil {
		if errors.Is(err, filetree.ErrNotFile) {
			r.fail(err) // something else is followed now as if it were a file
		}
		if errors.Is(err, syscall.EMFILE) {
			r.settle() // which closes files
		}
		switch {
		case filetree.Absent(err):
			return found{path: e.Path}, false
		case !last && !errors.Is(err, fs.ErrPermission):
			return found{}, true
		}
		return found{path: e.Path, item: &item{Entry: e, loose: true}, err: err}, false
	}
	defer r.opened(e.Path, file)
	hot := !followed || !unwritten(file)
	if why == byOpening && !hot && old.isStill(opened) {
		return found{path: e.Path, same: true, shut: true}, false
	}
	it, err := r.content(ctx, opened, file, old)
	if err != nil {
		return found{path: e.Path, item: &item{Entry: opened, loose: true}, err: err}, false
	}
	if !r.tree.unchanged(file, opened) {
		if !last {
			r.tree.drop(it)
			return found{}, true
		}
		hot = true
	}
	if old != nil && old.hash == it.hash && old.loose == it.loose && old.Untouched(opened) {
		r.tree.drop(it)
		return found{path: e.Path, same: true, hot: hot, shut: true}, false
	}
	return found{path: e.Path, item: it, hot: hot, shut: true}, false
}

// unwritten reports whether certainly no process can write to the file without opening it first.
func unwritten(f *os.File) bool {
	ok, err := treewatch.Unwritten(f)
	return ok && err == nil
}

// content reads a file into the store, or only compares it if that is enough.
func (r *refresh) content(ctx context.Context, e filetree.Entry, f *os.File, old *item) (*item, error) {
	if !r.loose {
		hash, n, err := r.tree.objects.Put(ctx, f, e.Size)
		e.Size = n
		return &item{Entry: e, hash: hash}, err
	}
	hash, n, err := r.tree.objects.Sum(ctx, f)
	if err != nil {
		return nil, err
	}
	e.Size = n
	if keeps(old, hash) || keeps(r.want[e.Path], hash) {
		r.tree.objects.Retain(hash)
		return &item{Entry: e, hash: hash}, nil
	}
	return &item{Entry: e, hash: hash, loose: true}, nil
}

// keeps reports whether an item has that content, and keeps it in the store.
func keeps(it *item, hash objects.Hash) bool {
	return it != nil && !it.loose && it.Kind == filetree.File && it.hash == hash
}

// settleAt is how many files are held open at most: a part of what the process may.
var settleAt = sync.OnceValue(func() int { return min(128, openFiles()/4) })

// follow makes the watcher report if the file gets a name outside of the tree, through which it could be written
// unseen. It reports whether that is possible: the file must be readable.
func (r *refresh) follow(p string) bool {
	if r.tree.watch == nil {
		return true
	}
	err := r.tree.watch.AddFile(p)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return false
	case err != nil && !filetree.Absent(err):
		r.fail(err)
	}
	return true
}

// opened takes a file that was read. The watcher also reports our own opening. To know that no other process opened
// the file meanwhile, it stays open until all events are taken, and only then its writers are queried.
func (r *refresh) opened(p string, f *os.File) {
	if r.tree.watch == nil {
		_ = f.Close() // only read
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading = append(r.reading, treewatch.Reading{Path: p, File: f})
	if len(r.reading) >= settleAt() {
		r.settleLocked()
	}
}

func (r *refresh) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settleLocked()
}

func (r *refresh) settleLocked() {
	if len(r.reading) == 0 {
		return
	}
	hot, err := r.tree.watch.Settle(r.reading)
	r.failLocked(err)
	for i, reading := range r.reading {
		if err != nil || hot[i] {
			r.unsettled[reading.Path] = true
		}
		_ = reading.File.Close() // only read
	}
	r.reading = r.reading[:0]
}

func (r *refresh) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(err)
}

// failLocked keeps in mind that the watcher is of no further use.
func (r *refresh) failLocked(err error) {
	if err != nil && r.watchErr == nil {
		r.watchErr = err
	}
}
