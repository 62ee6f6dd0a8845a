// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// A MemFS is an [FS] in memory, for tests.
type MemFS struct {
	*rooted
	store *memStore
}

// NewMemFS makes an empty file system in memory.
func NewMemFS(opts *Options) *MemFS {
	store := &memStore{root: newMemFolder()}
	return &MemFS{rooted: newRooted(store, opts), store: store}
}

// Symlink makes a symbolic link, and the folders above it. Its target may lead anywhere; it is never followed out.
func (m *MemFS) Symlink(target, name string) error {
	return m.change("symlink", name, func(name string) error {
		name, err := resolve(m.files, name, false)
		if err != nil {
			return err
		}
		if _, err := m.files.Lstat(name); err == nil {
			return fs.ErrExist
		}
		if err := m.opts.checkNew(name); err != nil {
			return err
		}
		if err := m.mkdirAll(path.Dir(name)); err != nil {
			return err
		}
		return m.store.put(name, &memNode{mode: fs.ModeSymlink | 0o777, target: target, modTime: time.Now()})
	})
}

// A memNode is a file, a folder or a link. Its content is replaced, never changed: open readers keep the old one.
type memNode struct {
	mode    fs.FileMode
	modTime time.Time
	data    []byte
	target  string
	kids    map[string]*memNode
}

// A memView is a node as it was at one moment.
type memView struct {
	memNode
	entries []fs.DirEntry
}

func newMemFolder() *memNode {
	return &memNode{mode: fs.ModeDir | 0o755, modTime: time.Now(), kids: map[string]*memNode{}}
}

func (n *memNode) info(name string) memInfo {
	size := int64(len(n.data))
	if n.mode&fs.ModeSymlink != 0 {
		size = int64(len(n.target))
	}
	return memInfo{name: path.Base(name), size: size, mode: n.mode, modTime: n.modTime}
}

// memStore keeps files in memory. Names of its own methods have no links.
type memStore struct {
	mu   sync.RWMutex
	root *memNode
}

func (m *memStore) findLocked(name string) (*memNode, error) {
	node := m.root
	if name == "." {
		return node, nil
	}
	for segment := range strings.SplitSeq(name, "/") {
		if !node.mode.IsDir() {
			return nil, errNoFolder
		}
		if node = node.kids[segment]; node == nil {
			return nil, fs.ErrNotExist
		}
	}
	return node, nil
}

// follow finds what a name leads to. The link at its end is followed only if last is true.
func (m *memStore) follow(name string, last bool) (memView, error) {
	name, err := resolve(rawMem{m}, name, last)
	if err != nil {
		return memView{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	node, err := m.findLocked(name)
	if err != nil {
		return memView{}, err
	}
	return memView{memNode: *node, entries: node.entriesLocked()}, nil
}

// rawMem looks at names without links, for resolve.
type rawMem struct{ *memStore }

func (m rawMem) Lstat(name string) (fs.FileInfo, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	node, err := m.findLocked(name)
	if err != nil {
		return nil, err
	}
	return node.info(name), nil
}

func (m rawMem) ReadLink(name string) (string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	node, err := m.findLocked(name)
	if err != nil {
		return "", err
	}
	return node.target, nil
}

func (m *memStore) Lstat(name string) (fs.FileInfo, error) { return m.look(name, false) }

func (m *memStore) stat(name string) (fs.FileInfo, error) { return m.look(name, true) }

func (m *memStore) look(name string, last bool) (fs.FileInfo, error) {
	node, err := m.follow(name, last)
	if err != nil {
		return nil, err
	}
	return node.info(name), nil
}

func (m *memStore) ReadLink(name string) (string, error) {
	node, err := m.follow(name, false)
	if err == nil && node.mode&fs.ModeSymlink == 0 {
		err = errNoLink
	}
	return node.target, err
}

func (m *memStore) open(name string) (fs.File, error) {
	node, err := m.follow(name, true)
	if err != nil {
		return nil, err
	}
	if node.mode.IsDir() {
		return &memFolder{memInfo: node.info(name), name: name, entries: node.entries}, nil
	}
	return &memFile{memInfo: node.info(name), Reader: bytes.NewReader(node.data)}, nil
}

func (m *memStore) readDir(name string) ([]fs.DirEntry, error) {
	node, err := m.follow(name, true)
	if err == nil && !node.mode.IsDir() {
		err = errNoFolder
	}
	return node.entries, err
}

func (n *memNode) entriesLocked() []fs.DirEntry {
	entries := make([]fs.DirEntry, 0, len(n.kids))
	for _, name := range slices.Sorted(maps.Keys(n.kids)) {
		entries = append(entries, fs.FileInfoToDirEntry(n.kids[name].info(name)))
	}
	return entries
}

func (m *memStore) put(name string, node *memNode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.putLocked(name, node)
}

func (m *memStore) putLocked(name string, node *memNode) error {
	folder, err := m.findLocked(path.Dir(name))
	if err != nil {
		return err
	}
	if !folder.mode.IsDir() {
		return errNoFolder
	}
	folder.modTime = time.Now()
	if node == nil {
		delete(folder.kids, path.Base(name))
		return nil
	}
	folder.kids[path.Base(name)] = node
	return nil
}

func (m *memStore) write(name string, data []byte, old fs.FileInfo, opts WriteOptions) error {
	node := &memNode{mode: opts.Perm, modTime: time.Now(), data: bytes.Clone(data)}
	if old != nil {
		node.mode = old.Mode().Perm()
		if opts.Append {
			before, err := m.follow(name, true)
			if err != nil {
				return err
			}
			node.data = slices.Concat(before.data, data)
		}
	}
	return m.put(name, node)
}

func (m *memStore) mkdir(name string) error { return m.put(name, newMemFolder()) }

func (m *memStore) removeAll(name string) error { return m.put(name, nil) }

func (m *memStore) rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.findLocked(oldName)
	if err != nil {
		return err
	}
	if err := m.putLocked(newName, node); err != nil {
		return err
	}
	return m.putLocked(oldName, nil)
}

type memInfo struct {
	name    string
	size    int64
	mode    fs.FileMode
	modTime time.Time
}

func (i memInfo) Name() string               { return i.name }
func (i memInfo) Size() int64                { return i.size }
func (i memInfo) Mode() fs.FileMode          { return i.mode }
func (i memInfo) ModTime() time.Time         { return i.modTime }
func (i memInfo) IsDir() bool                { return i.mode.IsDir() }
func (i memInfo) Sys() any                   { return nil }
func (i memInfo) Stat() (fs.FileInfo, error) { return i, nil }
func (i memInfo) Close() error               { return nil }

// A memFile is an open file: it reads, seeks and reads at an offset, like a file of the system.
type memFile struct {
	memInfo
	*bytes.Reader
}

func (f *memFile) Size() int64 { return f.memInfo.size }

type memFolder struct {
	memInfo
	name    string
	entries []fs.DirEntry // that were not given out yet
}

func (f *memFolder) Read([]byte) (int, error) { return 0, pathError("read", f.name, errIsFolder) }

func (f *memFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		all := f.entries
		f.entries = nil
		return all, nil
	}
	if len(f.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.entries))
	some := f.entries[:n]
	f.entries = f.entries[n:]
	return some, nil
}
