// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"maps"
	"path"
	"slices"

	"github.com/drover-agents/drover/workspace/internal/filetree"
	"github.com/drover-agents/drover/workspace/internal/objects"
)

// An item is the known state of one path. It never changes, and belongs to one version in a history: it is the
// present state, or the state before a change.
type item struct {
	filetree.Entry
	hash objects.Hash // of the content of a file
	// loose items are known only well enough to be rolled back: their content is not in the store.
	loose bool
}

// alike reports whether two items, each of which may be nil, have the same content and the same restorable metadata.
// Other names of the same file do not count.
func alike(a, b *item) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Same(b.Entry) && a.hash == b.hash
}

// inode names a file that may have several names.
type inode struct{ dev, ino uint64 }

func (it *item) inode() inode { return inode{it.Stamp.Dev, it.Stamp.Ino} }

func (it *item) linked() bool { return it != nil && it.Kind == filetree.File && it.Stamp.Links > 1 }

type paths map[string]struct{}

// A history is what a tree is now, and how it was at some moments before, which are its versions. It
// keeps for each version what the changes after it took away, so that a version costs what changed.
type history struct {
	now map[string]*item
	// below are the paths directly in each folder, and names those of each file with several.
	below map[string]paths
	names map[inode]paths
	// versions are those not released, oldest first.
	versions []*version
	last     int64
	// drop receives items that no version needs any longer.
	drop func(*item)
}

// A version is a moment. Before has what the paths were that changed between it and the next version, nil
// for those that were not there.
type version struct {
	id     int64
	before map[string]*item
}

func newHistory(drop func(*item)) *history {
	return &history{now: map[string]*item{}, below: map[string]paths{}, names: map[inode]paths{}, drop: drop}
}

// take makes the present a version.
func (h *history) take() int64 {
	h.last++
	h.versions = append(h.versions, &version{id: h.last, before: map[string]*item{}})
	return h.last
}

func (h *history) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(h.versions, id, func(v *version, id int64) int { return int(v.id - id) })
}

// set sets the present item of a path; nil is nothing. The old item is kept if a version needs it.
func (h *history) set(p string, it *item) {
	old := h.now[p]
	if old == it {
		return
	}
	h.setNow(p, old, it)
	switch newest := len(h.versions) - 1; {
	case newest < 0, sameFile(old, it):
		h.forget(old)
	default:
		if _, known := h.versions[newest].before[p]; known {
			h.forget(old)
		} else {
			h.versions[newest].before[p] = old
		}
	}
}

// sameFile reports whether nothing differs but the time of the last change of the inode.
func sameFile(a, b *item) bool {
	if a == nil || b == nil || a.hash != b.hash {
		return false
	}
	x, y := a.Entry, b.Entry
	x.Stamp.Changed = y.Stamp.Changed
	return x == y
}

func (h *history) forget(it *item) {
	if it != nil {
		h.drop(it)
	}
}

func (h *history) setNow(p string, old, it *item) {
	if old.linked() {
		discard(h.names, old.inode(), p)
	}
	if it.linked() {
		include(h.names, it.inode(), p)
	}
	if it == nil {
		delete(h.now, p)
		h.leaveFolder(p)
		return
	}
	h.now[p] = it
	if old == nil {
		h.joinFolder(p)
	}
}

// joinFolder puts a path below its folder, and that below its own, though it may not be known yet.
func (h *history) joinFolder(p string) {
	for p != "." {
		dir := path.Dir(p)
		if _, in := h.below[dir][p]; in {
			return
		}
		include(h.below, dir, p)
		p = dir
	}
}

func (h *history) leaveFolder(p string) {
	for p != "." && h.now[p] == nil && len(h.below[p]) == 0 {
		dir := path.Dir(p)
		discard(h.below, dir, p)
		p = dir
	}
}

func include[K comparable](sets map[K]paths, key K, p string) {
	if sets[key] == nil {
		sets[key] = paths{}
	}
	sets[key][p] = struct{}{}
}

func discard[K comparable](sets map[K]paths, key K, p string) {
	delete(sets[key], p)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}

func (h *history) remove(p string) {
	for _, child := range slices.Collect(maps.Keys(h.below[p])) {
		h.remove(child)
	}
	h.set(p, nil)
}

func (h *history) under(p string, yield func(string)) {
	for child := range h.below[p] {
		yield(child)
		h.under(child, yield)
	}
}

// release gives up a version. The version before it takes over its items, and then covers the changes of both.
func (h *history) release(id int64) {
	at, ok := h.find(id)
	if !ok {
		return
	}
	gone := h.versions[at]
	h.versions = slices.Delete(h.versions, at, at+1)
	for p, it := range gone.before {
		if at > 0 {
			older := h.versions[at-1].before
			if _, known := older[p]; !known {
				older[p] = it
				continue
			}
		}
		h.forget(it)
	}
}

// since returns what the paths were at a version that changed after it.
func (h *history) since(id int64) map[string]*item {
	at, _ := h.find(id)
	was := map[string]*item{}
	for _, v := range slices.Backward(h.versions[at:]) {
		maps.Copy(was, v.before)
	}
	return was
}

func (h *history) at(id int64) map[string]*item {
	all := maps.Clone(h.now)
	for p, it := range h.since(id) {
		if it == nil {
			delete(all, p)
		} else {
			all[p] = it
		}
	}
	return all
}

// A step from one version to another: what a path was in each.
type difference struct{ from, to *item }

func (h *history) between(from, to int64) map[string]difference {
	was, is := h.since(from), h.since(to)
	changed := map[string]difference{}
	compare := func(p string) {
		d := difference{h.value(was, p), h.value(is, p)}
		if !alike(d.from, d.to) {
			changed[p] = d
		}
	}
	for p := range was {
		compare(p)
	}
	for p := range is {
		compare(p)
	}
	return changed
}

// value is what a path was, given what those were that changed.
func (h *history) value(was map[string]*item, p string) *item {
	if it, changed := was[p]; changed {
		return it
	}
	return h.now[p]
}
