// SPDX-License-Identifier: Apache-2.0

package treewatch

import "strings"

// A watch is a folder or file that the kernel watches for us, under a number. It never changes its path:
// what is moved is dropped, with everything below it, and added again where it went.
type watch struct {
	path   string
	number int32
	isDir  bool
	below  map[string]*watch // by path
}

// watches are all of a tree. byNumber and byPath have the same ones.
type watches struct {
	byNumber map[int32]*watch
	byPath   map[string]*watch
	dropped  []int32 // those that the kernel still has
}

// put records that a path is watched. It returns false if the right path is unknown and the caller has to start
// from scratch: the same folder was found under two paths, or the one above is not watched.
func (ws *watches) put(path string, number int32, isDir bool) bool {
	if same := ws.byNumber[number]; same != nil {
		// Two names of one file are nothing strange, and a file with two is looked at every time.
		return same.path == path && same.isDir == isDir || !same.isDir && !isDir
	}
	if old := ws.byPath[path]; old != nil {
		ws.drop(path) // something else is there by now
	}
	above := ws.byPath[parent(path)]
	if above == nil && path != "." {
		ws.dropped = append(ws.dropped, number)
		return false
	}
	w := &watch{path: path, number: number, isDir: isDir}
	ws.byNumber[number], ws.byPath[path] = w, w
	if above != nil {
		if above.below == nil {
			above.below = make(map[string]*watch)
		}
		above.below[path] = w
	}
	return true
}

// drop forgets a path and all below it.
func (ws *watches) drop(path string) {
	w := ws.byPath[path]
	if w == nil {
		return
	}
	if above := ws.byPath[parent(path)]; above != nil {
		delete(above.below, path)
	}
	ws.forget(w)
}

func (ws *watches) forget(w *watch) {
	delete(ws.byPath, w.path)
	delete(ws.byNumber, w.number)
	ws.dropped = append(ws.dropped, w.number)
	for _, child := range w.below {
		ws.forget(child)
	}
}

// parent is the folder that a path is in, "." for the topmost ones.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}
