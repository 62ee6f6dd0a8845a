// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"

	"github.com/drover-agents/drover/advice"
)

// A Measure is what folders hold. The folders that were named do not count themselves.
type Measure struct {
	Bytes      int64 // taken on the disk
	Apparent   int64 // the sum of what files claim to have
	Files      int64
	Unreadable int64  // folders that could not be looked into, or not to the end
	Largest    string // the file that takes most; its path may be longer than the system accepts
	Fullest    string // the folder with the most entries
	SetID      string // a program with set-id bits or capabilities, and that the cell may write

	largest, fullest int64
}

// An entry is what a walk learns about a name.
type entry struct {
	id       fileID
	isFolder bool
	linked   bool // has more names than one
	boundary bool // something is mounted here
	owner    uint32
	setID    bool // see Measure.SetID
	runs     bool // a program that the cell may write
	bytes    int64
	apparent int64
}

// A fileID is the same for all names of a file.
type fileID struct{ dev, ino uint64 }

// A tree is the part of a walk below one root.
type tree interface {
	// step counts about n names, and reports whether there is more.
	step(n int) bool
	close()
}

// A walk counts folders in steps, so that it can pause.
type walk struct {
	found   Measure
	across  bool // enter other file systems
	roots   []string
	tree    tree                // the root that is being counted, or nil
	counted map[fileID]struct{} // files with several names, or none, that were counted
}

func newWalk(across bool, roots []string) *walk {
	return &walk{across: across, roots: roots, counted: map[fileID]struct{}{}}
}

// stride is how many names are counted between two questions whether to go on.
const stride = 256

// advance counts while more, asked every few hundred names, reports true. It may be called again if not complete.
func (w *walk) advance(more func() bool) (complete bool) {
	for {
		if w.tree == nil {
			if len(w.roots) == 0 {
				return true
			}
			w.tree = openTree(w, w.roots[0])
			w.roots = w.roots[1:]
		}
		if !w.tree.step(stride) {
			w.tree.close()
			w.tree = nil
		}
		if !more() {
			return w.tree == nil && len(w.roots) == 0
		}
	}
}

func (w *walk) close() {
	if w != nil && w.tree != nil {
		w.tree.close()
		w.tree = nil
	}
}

// add counts an entry; path is asked only if it sets a record.
func (w *walk) add(e entry, path func() string) {
	if e.linked && !e.isFolder {
		if _, again := w.counted[e.id]; again {
			return
		}
		w.counted[e.id] = struct{}{}
	}
	m := &w.found
	m.Files++
	m.Bytes += e.bytes
	if e.isFolder {
		return
	}
	m.Apparent += e.apparent
	if e.setID && m.SetID == "" {
		m.SetID = path()
	}
	if e.bytes > m.largest || m.Largest == "" {
		m.largest, m.Largest = e.bytes, path()
	}
}

// full notes how many entries a folder has.
func (w *walk) full(entries int64, path func() string) {
	if entries > w.found.fullest {
		w.found.fullest, w.found.Fullest = entries, path()
	}
}

// Count counts folders once, without a pause. It fails if one of them cannot be read, or if ctx ends.
func Count(ctx context.Context, otherFileSystems bool, paths ...string) (Measure, error) {
	if err := allReadable(paths); err != nil {
		return Measure{}, err
	}
	w := newWalk(otherFileSystems, paths)
	defer w.close()
	if !w.advance(func() bool { return ctx.Err() == nil }) {
		return Measure{}, ctx.Err()
	}
	return w.found, nil
}

func allReadable(paths []string) error {
	for _, path := range paths {
		if err := readable(path); err != nil {
			return advice.Wrap(fmt.Errorf("watching a folder: %w", err), "name folders that exist and can be read")
		}
	}
	return nil
}
