// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"os"
	"path/filepath"
)

// A pathTree counts what is below one root, one folder at a time, by paths: what systems other than Linux have in common.
type pathTree struct {
	walk    *walk
	root    fileID
	folders []string // still to be counted
	open    *os.File // the folder that is being counted
	entries int64
}

func openPathTree(w *walk, root string) *pathTree {
	t := &pathTree{walk: w}
	// The root may be a link.
	if to, err := filepath.EvalSymlinks(root); err == nil {
		root = to
	}
	info, err := os.Lstat(root)
	if err != nil {
		w.found.Unreadable++
		return t
	}
	t.root = entryOf(info).id
	t.folders = []string{root}
	return t
}

func (t *pathTree) close() {
	if t.open != nil {
		_ = t.open.Close()
		t.open = nil
	}
}

func (t *pathTree) step(n int) bool {
	if t.open == nil && !t.next() {
		return len(t.folders) > 0
	}
	infos, err := t.open.Readdir(n)
	for _, info := range infos {
		path := filepath.Join(t.open.Name(), info.Name())
		e := entryOf(info)
		t.entries++
		t.walk.add(e, func() string { return path })
		if e.isFolder && (t.walk.across || e.id.dev == t.root.dev) {
			t.folders = append(t.folders, path)
		}
	}
	if err != nil || len(infos) == 0 {
		t.walk.full(t.entries, t.open.Name)
		t.close()
	}
	return t.open != nil || len(t.folders) > 0
}

func (t *pathTree) next() bool {
	if len(t.folders) == 0 {
		return false
	}
	last := len(t.folders) - 1
	path := t.folders[last]
	t.folders = t.folders[:last]
	f, err := os.Open(path)
	if err != nil {
		if !os.IsNotExist(err) {
			t.walk.found.Unreadable++
		}
		return false
	}
	t.open, t.entries = f, 0
	return true
}
