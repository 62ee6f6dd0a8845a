// SPDX-License-Identifier: Apache-2.0

package leftover

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Swept is a folder that a killed program has left.
type Swept struct {
	Path string
	// Err is why the folder or something beside it is still there. It is nil if all is gone.
	Err error
}

// Sweep removes the folders of the kind in parent (empty means [os.TempDir]) whose programs were killed
// before they could, and what is beside them. It fails if parent cannot be listed to its end; what was
// found before that is swept all the same.
func (k Kind) Sweep(parent string) (swept []Swept, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	marked, err := k.marked(root)
	for _, name := range marked {
		if found, err := k.sweep(root, name); found || err != nil {
			swept = append(swept, Swept{Path: filepath.Join(parent, name), Err: err})
		}
	}
	return swept, err
}

// marked are the names of the folders that have a marker. Parent may be full of other things, so it is read by names alone.
func (k Kind) marked(root *os.Root) (folders []string, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	for err == nil {
		var names []string
		names, err = dir.Readdirnames(1024)
		for _, name := range names {
			folder, marked := strings.CutSuffix(name, markerSuffix)
			begins := func(prefix string) bool { return strings.HasPrefix(folder, prefix) }
			if marked && (begins(k.Prefix) || slices.ContainsFunc(k.Former, begins)) {
				folders = append(folders, folder)
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return folders, err
}

// sweep removes a folder whose program is gone, what is beside it and last its marker. found means more than a marker.
func (k Kind) sweep(root *os.Root, name string) (found bool, err error) {
	abandoned := k.abandonedMarker(root, name+markerSuffix)
	if abandoned == nil {
		return false, nil
	}
	defer abandoned.release()
	for _, suffix := range append([]string{""}, k.Beside...) {
		info, missing := root.Lstat(name + suffix)
		if missing != nil || !info.IsDir() || !OwnFile(info) {
			continue
		}
		found = true
		err = errors.Join(err, RemoveTree(root, name+suffix))
	}
	if err == nil {
		_ = root.Remove(name + markerSuffix) // while it is locked, so that no program takes the name
	}
	return found, err
}
