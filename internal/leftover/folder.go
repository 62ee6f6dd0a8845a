// SPDX-License-Identifier: Apache-2.0

package leftover

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// A Kind is one sort of folder.
type Kind struct {
	// Prefix begins the name of every folder of the kind, and of no other.
	Prefix string
	// Former are prefixes that the kind had. Folders under them are swept.
	Former []string
	// Text is the content of the marker, for people who find it. A sweep recognises a marker by it.
	Text string
	// Beside are the ends of the names of further folders, such as ".store": one each beside every
	// folder, made and removed together with it.
	Beside []string
}

// A Folder belongs to this program until it is removed.
type Folder struct {
	path   string
	beside []string
	mark   *marker

	removing sync.Once
	unmark   sync.Once
	removed  error
	notKept  error
}

// The names of folders end in this many letters, of those that [rand.Text] has.
const (
	randomLength  = 16
	randomLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// Make makes an empty folder in parent (empty means [os.TempDir]), and those beside it. Only this user may enter them.
func (k Kind) Make(parent string) (*Folder, error) {
	parent, err := resolve(parent)
	if err != nil {
		return nil, err
	}
	for {
		f, err := k.try(filepath.Join(parent, k.Prefix+rand.Text()[:randomLength]))
		if !errors.Is(err, errMarkerLost) && !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
}

// resolve makes a path absolute and free of links, so that it is the same for every reader.
func resolve(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(parent)
}

func (k Kind) try(path string) (*Folder, error) {
	mark, err := k.newMarker(path)
	if err != nil {
		return nil, err
	}
	var made []string
	for _, suffix := range append([]string{""}, k.Beside...) {
		if err = os.Mkdir(path+suffix, 0o700); err != nil {
			break
		}
		made = append(made, path+suffix)
	}
	if err == nil {
		return &Folder{path: path, beside: k.Beside, mark: mark}, nil
	}
	for _, dir := range made {
		_ = os.Remove(dir) // ours, and empty
	}
	mark.remove()
	return nil, err
}

// Path is the folder. It is absolute and has no links.
func (f *Folder) Path() string { return f.path }

// Beside is the folder beside it whose name ends so.
func (f *Folder) Beside(suffix string) string { return f.path + suffix }

// Remove removes the folder, those beside it, and everything in them, also what cannot be read. If that
// fails, a later sweep tries again. It may be called more than once and from several goroutines; all get
// the same answer, after the folder is gone.
func (f *Folder) Remove() error {
	f.removing.Do(func() {
		if f.removed = f.remove(); f.removed != nil {
			f.unmark.Do(f.mark.release)
			return
		}
		f.unmark.Do(f.mark.remove)
	})
	return f.removed
}

// Keep gives the folder up: no sweep removes it or those beside it. Remove still works. All calls return the same error.
func (f *Folder) Keep() error {
	f.unmark.Do(func() {
		if f.notKept = f.mark.disown(); f.notKept == nil {
			f.mark.remove()
		}
	})
	return f.notKept
}

func (f *Folder) remove() error {
	root, err := os.OpenRoot(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	name := filepath.Base(f.path)
	for _, suffix := range append([]string{""}, f.beside...) {
		err = errors.Join(err, RemoveTree(root, name+suffix))
	}
	return err
}
