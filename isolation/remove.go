// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// removeAttempts bounds how often a tree is tried to which somebody still writes.
const removeAttempts = 5

// removeTree removes a folder, also when folders in it allow nothing. It follows no link out of the
// root, whatever is exchanged for one meanwhile.
func removeTree(root *os.Root, name string) error {
	var err error
	for range removeAttempts {
		if err = root.RemoveAll(name); err == nil {
			return nil
		}
		openFolders(root, name)
	}
	return err
}

// openFolders gives the owner every right in a folder and all folders below it.
func openFolders(root *os.Root, dir string) {
	info, err := root.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	if info.Mode().Perm()&0o700 != 0o700 {
		_ = root.Chmod(dir, 0o700) // removing tells what became of it
	}
	entries, _ := readDir(root, dir)
	for _, entry := range entries {
		if entry.IsDir() {
			openFolders(root, filepath.Join(dir, entry.Name()))
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
