// SPDX-License-Identifier: Apache-2.0

package leftover

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// removeAttempts bounds how often the removal of a tree is tried while a program still writes to it.
const removeAttempts = 5

// RemoveTree removes a folder, also when folders in it allow nothing or are deeper than a program may
// have open files. It follows no link out of the root, whatever is exchanged for one meanwhile.
func RemoveTree(root *os.Root, name string) error {
	var err error
	for range removeAttempts {
		// First, and not when it has failed: a deep tree would take all open files of this program, which has other runs.
		openFolders(root, name)
		if err = root.RemoveAll(name); err == nil {
			return nil
		}
	}
	return err
}

// maxDepth is how deep a tree may be before it is taken apart: removal holds an open file for each level, which are limited.
const maxDepth = 32

// openFolders gives the owner every right in a folder and all folders below it, and moves up those that are too deep.
// It works through a handle on the folder itself: links that are put into it meanwhile lead to nothing beside it.
func openFolders(parent *os.Root, name string) {
	info, err := parent.Lstat(name)
	if err != nil || !info.IsDir() {
		return
	}
	if info.Mode().Perm()&0o700 != 0o700 {
		_ = parent.Chmod(name, 0o700) // the removal reports a failure
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		return
	}
	o := &opener{root: root, prefix: "moved-" + rand.Text() + "-"}
	o.openBelow(".", 0)
	for n := 0; n < o.moved; n++ { // which grows while it works
		o.open(o.movedPath(n), 1)
	}
}

// opener makes a tree removable.
type opener struct {
	root   *os.Root
	prefix string // of a name that no agent has used
	moved  int    // how many folders were moved up
}

func (o *opener) movedPath(n int) string { return o.prefix + strconv.Itoa(n) }

func (o *opener) open(dir string, depth int) {
	info, err := o.root.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	if info.Mode().Perm()&0o700 != 0o700 {
		_ = o.root.Chmod(dir, 0o700) // the removal reports a failure
	}
	if depth > maxDepth && o.root.Rename(dir, o.movedPath(o.moved)) == nil {
		o.moved++
		return
	}
	o.openBelow(dir, depth)
}

func (o *opener) openBelow(dir string, depth int) {
	entries, _ := readDir(o.root, dir)
	for _, entry := range entries {
		if entry.IsDir() {
			o.open(filepath.Join(dir, entry.Name()), depth+1)
		}
	}
}

func readDir(root *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}
