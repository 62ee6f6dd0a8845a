// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A walker shares the folders of a tree among several goroutines. None is held open for long, however
// deep the tree is: each is opened by its path from the root.
type walker struct {
	root *Root
	opts WalkOptions
	ctx  context.Context

	workers sync.WaitGroup // but for the caller

	mu    sync.Mutex
	more  sync.Cond // todo has grown, or everything is done
	spare int       // workers that may still be started
	todo  []*folder
	open  int // folders that are not done
	found int
	errs  []error
}

type folder struct {
	path    string
	entries []Entry
	below   []*folder // of those entries that are folders, in order
}

func (r *Root) walk(ctx context.Context, o WalkOptions) ([]Entry, error) {
	top := &folder{path: o.From}
	w := &walker{root: r, opts: o, ctx: ctx, spare: runtime.GOMAXPROCS(0) - 1, todo: []*folder{top}, open: 1}
	w.more.L = &w.mu
	w.work()
	w.workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return top.appendTo(make([]Entry, 0, w.found)), errors.Join(w.errs...)
}

func (w *walker) work() {
	l := newLister(!w.opts.NoXattrs)
	defer listers.Put(l)
	for f := w.next(); f != nil; f = w.next() {
		var err error
		if err = w.ctx.Err(); err == nil {
			err = w.list(l, f)
		}
		w.done(f, err)
	}
}

func (w *walker) next() *folder {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.todo) == 0 && w.open > 0 {
		w.more.Wait()
	}
	n := len(w.todo)
	if n == 0 {
		return nil
	}
	f := w.todo[n-1] // the last first, which keeps the list short
	w.todo = w.todo[:n-1]
	return f
}

func (w *walker) done(f *folder, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found += len(f.entries)
	w.todo = append(w.todo, f.below...)
	w.open += len(f.below) - 1
	if err != nil {
		w.errs = append(w.errs, err)
	}
	for ; w.spare > 0 && len(w.todo) > 1; w.spare-- { // a small tree is one goroutine's
		w.workers.Go(w.work)
	}
	if w.open == 0 || len(f.below) > 1 {
		w.more.Broadcast()
	}
}

// list looks at the entries of one folder. That it is gone is an error only where the walk begins.
func (w *walker) list(l *lister, f *folder) error {
	entries, err := l.list(w.root, f.path)
	if err != nil {
		if f.path != w.opts.From && (errors.Is(err, fs.ErrNotExist) || !w.opts.Exchanges && exchanged(err)) {
			return nil
		}
		return failed("walk", f.path, err)
	}
	if w.opts.Skip != nil {
		entries = slices.DeleteFunc(entries, w.opts.Skip)
	}
	f.entries = entries
	for i := range entries {
		if entries[i].Kind == Dir {
			f.below = append(f.below, &folder{path: entries[i].Path})
		}
	}
	return nil
}

// exchanged reports that something else is where a folder was.
func exchanged(err error) bool { return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) }

// appendTo puts the entries of a tree in the order of their paths. That is not quite the order of their
// folders: "a-b" comes before "a/b", though "a" comes before both.
func (f *folder) appendTo(all []Entry) []Entry {
	type frame struct {
		f       *folder
		i, n    int       // the next entry, and the next folder in below
		waiting []*folder // whose own entry is in the list, but not what is in them; the last comes first
	}
	stack := []frame{{f: f}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		last := len(top.waiting) - 1
		if last >= 0 && (top.i == len(top.f.entries) || belowIsBefore(top.waiting[last].path, top.f.entries[top.i].Path)) {
			next := top.waiting[last]
			top.waiting = top.waiting[:last]
			stack = append(stack, frame{f: next})
			continue
		}
		if top.i == len(top.f.entries) {
			stack = stack[:len(stack)-1]
			continue
		}
		e := &top.f.entries[top.i]
		top.i++
		all = append(all, *e)
		if e.Kind == Dir {
			top.waiting = append(top.waiting, top.f.below[top.n])
			top.n++
		}
	}
	return all
}

// belowIsBefore reports whether what is in a folder comes before a path that itself comes after it.
func belowIsBefore(folder, path string) bool {
	return !strings.HasPrefix(path, folder) || path[len(folder)] > '/'
}
