// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A treeStore is the folder beside a tree for contents, the journal of a rollback, and files that rollbacks put
// aside. Its lock means that the tree is in use.
type treeStore struct {
	dir    string
	made   bool // by us, and for us alone: Close removes it
	needed bool // by an unfinished rollback: it is not removed
	lock   *os.File
	saved  []savedFolder // oldest first
}

// A savedFolder has the files that one rollback took out of the tree.
type savedFolder struct {
	dir   string
	bytes int64
	// lasting ones are a side of a conflict, and stay.
	lasting bool
}

const lockName = "lock"

func (s *treeStore) objects() string { return filepath.Join(s.dir, "objects") }
func (s *treeStore) work() string    { return filepath.Join(s.dir, "work") }

// openTreeStore makes or finds the store of a folder, whose path is absolute and without links.
func openTreeStore(tree string, opts *TreeOptions) (*treeStore, error) {
	s := &treeStore{dir: opts.Store}
	if s.dir == "" {
		sum := sha256.Sum256([]byte(tree))
		s.dir = filepath.Join(opts.TempDir, fmt.Sprintf("drover-tree-%d-%x", os.Getuid(), sum[:8]))
		s.made = true
	}
	err := errStoreLost
	for try := 0; try < 10 && errors.Is(err, errStoreLost); try++ { // another process may be removing it at the moment
		err = s.open(tree)
	}
	if err != nil {
		s.unlock()
		return nil, err
	}
	s.needed = true // until it is known to be at its end
	return s, s.clean()
}

var errStoreLost = errors.New("workspace: the store was removed by another process")

func (s *treeStore) open(tree string) error {
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return advice.Wrap(fmt.Errorf("workspace: making the store: %w", err),
			"name a folder that can be written to as TreeOptions.Store or TempDir")
	}
	dir, err := realPath(s.dir)
	if err != nil {
		return errStoreLost
	}
	if within(filepath.ToSlash(dir), filepath.ToSlash(tree)) {
		return &SecurityError{Path: s.dir, Reason: "is the store of a tree and is inside that tree", Next: "choose a TreeOptions.Store outside of it"}
	}
	if err := s.checkOwner(); err != nil {
		return err
	}
	s.dir = dir
	return s.take(tree)
}

// checkOwner checks that no other user can reach the store: its name can be guessed.
func (s *treeStore) checkOwner() error {
	info, err := os.Lstat(s.dir)
	if err != nil {
		return errStoreLost
	}
	if s.made && (!info.IsDir() || !isPrivate(info)) {
		return &SecurityError{Path: s.dir, Reason: "is not a folder of this user alone", Next: "remove it, or choose another TreeOptions.TempDir"}
	}
	return nil
}

// take locks the store, and sees to it that the lock is still the one that others find.
func (s *treeStore) take(tree string) error {
	file, err := os.OpenFile(filepath.Join(s.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errStoreLost
		}
		return fmt.Errorf("workspace: locking the store: %w", err)
	}
	s.lock = file
	locked, err := filelock.Try(file)
	if err != nil {
		return err
	}
	if !locked {
		return advice.Wrap(fmt.Errorf("%w: %s is open as a tree elsewhere (%s is locked)", ErrBusy, tree, file.Name()),
			"close it there first")
	}
	mine, err := file.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(file.Name()); err != nil || !os.SameFile(mine, there) {
		s.unlock()
		return errStoreLost
	}
	return nil
}

func (s *treeStore) unlock() {
	if s.lock != nil {
		_ = filelock.Unlock(s.lock) // closing releases it too
		_ = s.lock.Close()
		s.lock = nil
	}
}

// clean removes the contents that a killed program has left, and finds the files that it has put aside.
func (s *treeStore) clean() error {
	if err := removeTree(s.dir, "objects"); err != nil {
		return fmt.Errorf("workspace: emptying the store: %w", err)
	}
	parent := filepath.Join(s.work(), "aside")
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("workspace: looking at the store: %w", err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(number(a.Name()), number(b.Name())) })
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		_, err := os.Lstat(s.lastingMark(dir))
		s.keepAside(dir, err == nil)
	}
	return nil
}

func number(name string) int {
	n, _ := strconv.Atoi(name) // others come first
	return n
}

func (s *treeStore) keepAside(dir string, lasting bool) {
	if dir == "" {
		return
	}
	s.saved = slices.DeleteFunc(s.saved, func(a savedFolder) bool { return a.dir == dir })
	s.saved = append(s.saved, savedFolder{dir: dir, bytes: diskBytes(dir), lasting: lasting})
	s.markLasting(dir, lasting)
}

// lastingMark is the file by which a later program knows that a saved folder stays.
func (s *treeStore) lastingMark(dir string) string {
	return filepath.Join(s.dir, "lasting", filepath.Base(dir))
}

// markLasting is best effort: without the mark a saved folder stays all the same, until the room is needed after the
// store was opened again.
func (s *treeStore) markLasting(dir string, lasting bool) {
	mark := s.lastingMark(dir)
	if !lasting {
		_ = os.Remove(mark)
		return
	}
	_ = os.MkdirAll(filepath.Dir(mark), 0o700)
	_ = os.WriteFile(mark, nil, 0o600)
}

func (s *treeStore) asideBytes() (sum int64) {
	for _, a := range s.saved {
		sum += a.bytes
	}
	return sum
}

// dropOldest removes the oldest saved folder that may go, and reports whether there was one.
func (s *treeStore) dropOldest() (dir string, ok bool, err error) {
	at := slices.IndexFunc(s.saved, func(a savedFolder) bool { return !a.lasting })
	if at < 0 {
		return "", false, nil
	}
	dir = s.saved[at].dir
	s.saved = slices.Delete(s.saved, at, at+1)
	return dir, true, removeTree(filepath.Dir(dir), filepath.Base(dir))
}

// close unlocks the store, and removes it if it was made for this tree and is not needed any more.
func (s *treeStore) close() error {
	defer s.unlock()
	if !s.made || s.needed {
		return removeTree(s.dir, "objects")
	}
	if err := s.remove(); err != nil {
		return fmt.Errorf("workspace: removing the store: %w", err)
	}
	return nil
}

// remove removes the lock last: then the folder may belong to another process, which found no lock and made one.
func (s *treeStore) remove() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return unlessGone(err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, removeTree(s.dir, e.Name()))
		}
	}
	if err = errors.Join(err, unlessGone(os.Remove(filepath.Join(s.dir, lockName)))); err != nil {
		return err
	}
	_ = os.Remove(s.dir) // unless it is in use already
	return nil
}

// boundAside removes saved folders until the store is within its limit.
func (t *Tree) boundAside() {
	_, contents := t.objects.Usage()
	for contents+t.store.asideBytes() > t.opts.MaxDisk {
		dir, ok, err := t.store.dropOldest()
		if !ok {
			return
		}
		t.log.Warn("removed what an earlier rollback put aside: the room is needed", "aside", dir, "err", err)
	}
}

// removeTree removes an entry of a folder with everything below it, also what allows nothing.
func removeTree(parent, name string) error {
	root, err := filetree.Open(parent)
	if err != nil {
		return unlessGone(err)
	}
	return errors.Join(unlessGone(root.RemoveAll(name)), root.Close())
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func diskBytes(dir string) (sum int64) {
	root, err := filetree.Open(dir)
	if err != nil {
		return 0
	}
	defer root.Close()
	entries, _ := root.Walk(context.Background(), &filetree.WalkOptions{NoXattrs: true})
	for _, e := range entries {
		sum += blocks(dir, e)
	}
	return sum
}

const block = 4096

// blocks is what an entry takes; of a large file with holes not even nearly its size.
func blocks(dir string, e filetree.Entry) int64 {
	if e.Size > 256*block {
		if info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(e.Path))); err == nil {
			return allocated(info)
		}
	}
	return (e.Size + block - 1) / block * block
}

func within(p, dir string) bool {
	return p == dir || dir == "." || dir == "/" || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}
