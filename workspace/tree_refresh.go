// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/drover-agents/drover/workspace/internal/filetree"
	"github.com/drover-agents/drover/workspace/internal/treewatch"
)

// A refresh brings the index of a tree up to date with the files.
type refresh struct {
	tree *Tree
	// loose compares contents and does not keep them, except those of want, which are kept already.
	loose bool
	want  map[string]*item
	// also are paths to check in addition to those of the watcher. A narrow refresh without a watcher checks nothing else.
	also   map[string]reason
	narrow bool

	scanned      map[string]inode // folders of which everything is looked at
	orphanRounds int

	mu        sync.Mutex
	reading   []treewatch.Reading
	unsettled map[string]bool
	watchErr  error
}

// run makes the index what the tree is. After an error everything is looked at the next time.
func (r *refresh) run(ctx context.Context) error {
	r.scanned, r.unsettled = map[string]inode{}, map[string]bool{}
	todo, err := r.begin(ctx)
	for err == nil && len(todo) > 0 {
		todo, err = r.round(ctx, todo)
	}
	if err != nil {
		r.tree.full = true
	}
	return err
}

// begin finds out what there is to look at.
func (r *refresh) begin(ctx context.Context) (map[string]reason, error) {
	t := r.tree
	if t.watch != nil && !t.full {
		if hints, err := t.watch.Take(); err == nil && !hints.Overflow {
			t.fastChecks++
			return r.named(ctx, hints)
		}
	}
	if r.narrow && t.watch == nil && !t.full {
		return r.also, nil
	}
	t.fullChecks++
	t.full = false
	return r.everything(ctx)
}

// round looks at paths, and returns those at which there is more to look at then.
func (r *refresh) round(ctx context.Context, todo map[string]reason) (map[string]reason, error) {
	results, err := r.lookAll(ctx, todo)
	if err != nil {
		return nil, err
	}
	return r.learnAll(results)
}

func (r *refresh) learnAll(results []found) (next map[string]reason, failed error) {
	next = map[string]reason{}
	for _, f := range results {
		if f.err != nil && !errors.Is(f.err, fs.ErrPermission) && failed == nil {
			failed = r.tree.readError(f.path, f.err)
		}
		if r.tree.learn(f) {
			r.scan(f.path, f.item.inode(), next)
		}
	}
	r.orphans(results, next)
	return next, failed
}

// orphans adds entries whose folder was missing a moment before or after: both are checked again, so that the index
// is a tree. In the end the folder is believed.
func (r *refresh) orphans(results []found, next map[string]reason) {
	t, some := r.tree, false
	for _, f := range results {
		dir := path.Dir(f.path)
		if above := t.history.now[dir]; f.path == "." || t.history.now[f.path] == nil || above != nil && above.Kind == filetree.Dir {
			continue
		}
		if some = true; r.orphanRounds < maxOrphanRounds {
			next[f.path] |= byContent
			next[dir] |= byStamp
		} else {
			t.forget(f.path)
		}
	}
	if some {
		r.orphanRounds++
	}
}

// maxOrphanRounds bounds how often one waits for a tree that does not come to rest.
const maxOrphanRounds = 10

// learn puts what was found into the index, and reports whether it is a folder of which nothing is known.
func (t *Tree) learn(f found) (unknown bool) {
	mark(t.racy, f.path, f.racy)
	mark(t.hot, f.path, f.hot)
	if f.shut {
		delete(t.opened, f.path)
	}
	if !f.same {
		mark(t.loose, f.path, f.item != nil && f.item.loose)
	}
	if delete(t.unread, f.path); f.err != nil {
		t.unread[f.path] = f.err
	}
	old := t.history.now[f.path]
	switch {
	case f.same:
		return false
	case f.item == nil:
		t.forget(f.path)
		return false
	}
	known := old != nil && old.Kind == filetree.Dir
	if known && f.item.Kind != filetree.Dir {
		t.forget(f.path)
	}
	unknown = f.item.Kind == filetree.Dir && (!known || old.inode() != f.item.inode())
	t.history.set(f.path, f.item)
	return unknown
}

func (t *Tree) forget(p string) {
	unmark := func(p string) {
		delete(t.racy, p)
		delete(t.hot, p)
		delete(t.loose, p)
		delete(t.opened, p)
		delete(t.unread, p)
		delete(t.shut, p)
	}
	unmark(p)
	t.history.under(p, unmark)
	t.history.remove(p)
}

func mark(set paths, p string, in bool) {
	if in {
		set[p] = struct{}{}
	} else {
		delete(set, p)
	}
}

// suspects adds the paths that have to be looked at each time.
func (r *refresh) suspects(todo map[string]reason) {
	t := r.tree
	for _, set := range []paths{t.racy, t.hot, t.loose} {
		for p := range set {
			todo[p] |= byContent
		}
	}
	for p := range t.unread {
		todo[p] |= byContent
	}
	for p, why := range r.also {
		todo[p] |= why
	}
}

// named returns the paths that the watcher named, those above them, and those that it cannot report.
func (r *refresh) named(ctx context.Context, hints treewatch.Hints) (map[string]reason, error) {
	todo := map[string]reason{".": byStamp}
	r.suspects(todo)
	r.linked(todo)
	for p, hint := range hints.Files {
		if hint == treewatch.Opened && r.tree.stampTells(p) {
			r.tree.opened[p] = struct{}{}
			continue
		}
		todo[p] |= reasonFor(hint)
		for dir := path.Dir(p); hint != treewatch.Opened && dir != "."; dir = path.Dir(dir) {
			todo[dir] |= byStamp
		}
	}
	if err := r.stillOpen(ctx, todo); err != nil {
		return nil, err
	}
	for dir := range hints.Dirs {
		r.scan(dir, inode{}, todo)
	}
	for _, dir := range slices.Collect(maps.Keys(r.tree.shut)) {
		r.scan(dir, inode{}, todo)
	}
	return todo, nil
}

// stampTells reports whether the index has a file whose stamp changes whenever it is written to.
func (t *Tree) stampTells(p string) bool {
	it := t.history.now[p]
	return it != nil && it.Kind == filetree.File && t.stamps && it.Stamp.Dev == t.dev
}

// askAtOnce is of how many files a refresh finds out whether a process has them open. That takes ten times as long
// as reading the stamp, and an agent that searches a tree opens all of it.
const askAtOnce = 128

// stillOpen adds files that a process may have open: some to query, others to check. For many, a walk is faster.
func (r *refresh) stillOpen(ctx context.Context, todo map[string]reason) error {
	opened := r.tree.opened
	if len(opened) > r.tree.askAtOnce && len(opened) > len(r.tree.history.now)/4 {
		r.askOpen(todo)
		_, err := r.walk(ctx, todo)
		return err
	}
	for p := range opened {
		todo[p] |= byStamp
	}
	r.askOpen(todo)
	return nil
}

// askOpen adds some of the files that a process may have open, to query.
func (r *refresh) askOpen(todo map[string]reason) {
	asked := 0
	for p := range r.tree.opened {
		if asked++; asked > r.tree.askAtOnce {
			return
		}
		todo[p] |= byOpening
	}
}

// linked adds the files with several names, because a write through one of them is not reported for the others.
func (r *refresh) linked(todo map[string]reason) {
	why := byStamp
	if !r.tree.stamps {
		why = byContent
	}
	for _, names := range r.tree.history.names {
		for p := range names {
			todo[p] |= why
		}
	}
}

func reasonFor(hint treewatch.Hint) reason {
	switch {
	case hint&(treewatch.Written|treewatch.Touched|treewatch.Gone) != 0:
		return byContent
	case hint&treewatch.Opened != 0:
		return byOpening
	}
	return byStamp
}

// scan adds the entries and the indexed paths of a folder. It watches before it reads: later changes are reported.
func (r *refresh) scan(dir string, node inode, todo map[string]reason) {
	if seen, ok := r.scanned[dir]; ok && (seen == node || node == inode{}) {
		return
	}
	t := r.tree
	if t.watch != nil {
		if err := t.watch.Add(dir); err != nil && !filetree.Absent(err) {
			t.stopWatching(err)
		}
	}
	r.scanned[dir] = node
	todo[dir] |= byStamp
	for p := range t.history.below[dir] {
		todo[p] |= byStamp
	}
	entries, err := t.root.ReadDir(dir)
	if delete(t.shut, dir); err != nil && !filetree.Absent(err) {
		t.shut[dir] = err
	}
	for _, e := range entries {
		todo[e.Path] |= byContent
		if e.Kind == filetree.Dir {
			r.scan(e.Path, inode{e.Stamp.Dev, e.Stamp.Ino}, todo)
		}
	}
}

// everything walks the whole tree, and returns what is not in the index as it is there.
func (r *refresh) everything(ctx context.Context) (map[string]reason, error) {
	t := r.tree
	t.log.Debug("looking at every file", "dir", t.dir)
	clear(t.unread)
	clear(t.shut)
	if err := r.watchAgain(ctx); err != nil {
		return nil, err
	}
	todo := map[string]reason{".": byStamp}
	entries, err := r.walk(ctx, todo)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if e := &entries[i]; e.Kind == filetree.Dir {
			r.scanned[e.Path] = inode{e.Stamp.Dev, e.Stamp.Ino} // and watched
		}
		r.mayBeOpen(&entries[i], todo)
	}
	r.suspects(todo)
	r.askOpen(todo)
	return todo, nil
}

// walk looks at all stamps, and adds what is not in the index as it is there.
func (r *refresh) walk(ctx context.Context, todo map[string]reason) ([]filetree.Entry, error) {
	t := r.tree
	entries, err := t.root.Walk(ctx, &filetree.WalkOptions{NoXattrs: true})
	if err != nil && !r.unreadable(err) {
		return nil, fmt.Errorf("workspace: looking at %s: %w", t.dir, err)
	}
	seen := 1
	for i := range entries {
		if r.compare(&entries[i], todo) {
			seen++
		}
	}
	if seen < len(t.history.now) {
		r.missing(entries, todo)
	}
	return entries, nil
}

// mayBeOpen is for files whose opening was not reported.
func (r *refresh) mayBeOpen(e *filetree.Entry, todo map[string]reason) {
	t := r.tree
	switch {
	case t.watch == nil || e.Kind != filetree.File:
	case t.stampTells(e.Path):
		t.opened[e.Path] = struct{}{}
	default:
		todo[e.Path] |= byOpening
	}
}

// compare adds the entry if it is not what the index has, and reports whether the index has anything.
func (r *refresh) compare(e *filetree.Entry, todo map[string]reason) bool {
	t := r.tree
	old := t.history.now[e.Path]
	if old != nil {
		e.Xattrs = old.Xattrs // they cannot change without the stamp
	}
	switch {
	case old == nil && e.Kind == filetree.File:
		todo[e.Path] |= isFile
	case old == nil || old.Entry != *e:
		todo[e.Path] |= byStamp
	case e.Kind != filetree.File:
	case !t.stamps || e.Stamp.Dev != t.dev:
		todo[e.Path] |= byContent
	}
	return old != nil
}

// missing adds what the index has and the walk did not see.
func (r *refresh) missing(entries []filetree.Entry, todo map[string]reason) {
	there := make(paths, len(entries))
	for i := range entries {
		there[entries[i].Path] = struct{}{}
	}
	for p := range r.tree.history.now {
		if _, ok := there[p]; !ok {
			todo[p] |= byStamp
		}
	}
}

// unreadable keeps in mind which folders cannot be read, and reports whether that is all that is wrong.
func (r *refresh) unreadable(err error) bool {
	var each []error
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		each = many.Unwrap()
	} else {
		each = []error{err}
	}
	for _, err := range each {
		at, ok := errors.AsType[*fs.PathError](err)
		if !ok || !errors.Is(err, fs.ErrPermission) {
			return false
		}
		r.tree.shut[at.Path] = err
	}
	return true
}
