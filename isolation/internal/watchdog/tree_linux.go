// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// keepOpen is how many folders of a branch stay open. Above the deepest ones a folder is closed and
// found again through the ".." of the one below it, so that no depth uses up our descriptors.
const keepOpen = 32

// An openedTree counts what is below one root, folder by folder: first all names of a folder, then its
// subfolders. It opens everything relative to the folder above, so that a path longer than the
// system accepts hides nothing, and a link that replaces a folder leads nowhere.
type openedTree struct {
	walk   *walk
	branch []*folder // from the root to the folder that is being counted
	buffer []byte
	names  []string // read, not yet counted
}

// A folder is one that was begun.
type folder struct {
	name    string // the path for a root
	fd      int    // -1 if closed meanwhile
	id      fileID
	owner   uint32
	listed  bool
	entries int64
	below   []string // subfolders that are still to be counted
}

// readable reports why a folder cannot be listed. A file needs no list.
func readable(path string) error {
	fd, err := openFolder(unix.AT_FDCWD, path, 0)
	if errors.Is(err, unix.ENOTDIR) {
		_, err = os.Stat(path)
		return err
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	return unix.Close(fd)
}

// openFolder opens a folder; the root may be a link, nothing below may.
func openFolder(at int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NONBLOCK|flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func openTree(w *walk, root string) tree { return newOpenedTree(w, root) }

func newOpenedTree(w *walk, root string) *openedTree {
	t := &openedTree{walk: w, buffer: make([]byte, 32<<10)}
	fd, err := openFolder(unix.AT_FDCWD, root, 0)
	if err == nil {
		t.push(root, fd)
		return t
	}
	e, isFile := t.stat(unix.AT_FDCWD, root)
	if !errors.Is(err, unix.ENOTDIR) || !isFile {
		w.found.Unreadable++
		return t
	}
	e.setID = e.setID || e.runs && hasCapabilities(root)
	w.add(e, func() string { return root })
	return t
}

func (t *openedTree) push(name string, fd int) {
	f := &folder{name: name, fd: fd}
	if e, ok := t.stat(fd, ""); ok {
		f.id, f.owner = e.id, e.owner
	}
	t.branch = append(t.branch, f)
	if high := len(t.branch) - keepOpen; high > 0 { // the root stays open
		t.branch[high].closeFolder()
	}
}

func (f *folder) closeFolder() {
	if f.fd >= 0 {
		_ = unix.Close(f.fd)
		f.fd = -1
	}
}

func (t *openedTree) close() {
	for _, f := range t.branch {
		f.closeFolder()
	}
	t.branch = nil
}

func (t *openedTree) step(n int) bool {
	for n > 0 && len(t.branch) > 0 {
		f := t.branch[len(t.branch)-1]
		switch {
		case len(t.names) > 0:
			now := min(n, len(t.names))
			t.count(f, t.names[:now])
			t.names = t.names[now:]
			n -= now
		case !f.listed:
			t.list(f)
			n--
		case len(f.below) > 0:
			t.descend(f)
			n--
		default:
			t.ascend(f)
			n--
		}
	}
	return len(t.branch) > 0
}

func (t *openedTree) list(f *folder) {
	n, err := unix.ReadDirent(f.fd, t.buffer)
	if err == unix.EINTR {
		return
	}
	if err != nil && err != unix.ENOENT { // a removed folder has no entries
		t.walk.found.Unreadable++
	}
	if n <= 0 {
		f.listed = true
		t.walk.full(f.entries, func() string { return t.path("") })
		return
	}
	_, _, t.names = unix.ParseDirent(t.buffer[:n], -1, t.names[:0])
}

// count counts names of the folder; those that are gone again are left out.
func (t *openedTree) count(f *folder, names []string) {
	for _, name := range names {
		e, ok := t.stat(f.fd, name)
		if !ok {
			continue
		}
		f.entries++
		e.setID = e.setID || e.runs && hasCapabilities("/proc/self/fd/"+strconv.Itoa(f.fd)+"/"+name)
		t.walk.add(e, func() string { return t.path(name) })
		if e.isFolder && (t.walk.across || !e.boundary) {
			f.below = append(f.below, name)
		}
	}
}

func (t *openedTree) descend(f *folder) {
	last := len(f.below) - 1
	name := f.below[last]
	f.below = f.below[:last]
	fd, err := openFolder(f.fd, name, unix.O_NOFOLLOW)
	switch {
	case err == nil:
		t.push(name, fd)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR): // gone, or another thing by now
	default:
		t.walk.found.Unreadable++
	}
}

// ascend leaves a folder that is counted. If the one above was closed, it is found again; if it is
// not the same any more, because something was moved, the rest of the branch is given up.
func (t *openedTree) ascend(f *folder) {
	defer f.closeFolder()
	t.branch = t.branch[:len(t.branch)-1]
	if len(t.branch) == 0 {
		return
	}
	above := t.branch[len(t.branch)-1]
	if above.fd >= 0 {
		return
	}
	fd, err := openFolder(f.fd, "..", unix.O_NOFOLLOW)
	if err == nil {
		if e, ok := t.stat(fd, ""); ok && e.id == above.id {
			above.fd = fd
			return
		}
		_ = unix.Close(fd)
	}
	t.giveUp()
}

// giveUp drops the folders that are closed, which are all but the root and the deepest ones.
func (t *openedTree) giveUp() {
	for len(t.branch) > 0 && t.branch[len(t.branch)-1].fd < 0 {
		t.walk.found.Unreadable++
		t.branch = t.branch[:len(t.branch)-1]
	}
}

// path is the path of a name in the folder that is being counted.
func (t *openedTree) path(name string) string {
	var parts []string
	for _, f := range t.branch {
		parts = append(parts, f.name)
	}
	if name != "" {
		parts = append(parts, name)
	}
	if len(parts) == 1 {
		return filepath.Clean(parts[0])
	}
	return strings.Join(slices.Concat([]string{filepath.Clean(parts[0])}, parts[1:]), "/")
}

// stat asks about a name in a folder, or about the folder itself if the name is empty.
func (t *openedTree) stat(fd int, name string) (entry, bool) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var s unix.Statx_t
	for {
		err := unix.Statx(fd, name, flags, unix.STATX_BASIC_STATS, &s)
		if err == nil {
			return t.entryOf(&s), true
		}
		if err != unix.EINTR {
			return entry{}, false
		}
	}
}

func (t *openedTree) entryOf(s *unix.Statx_t) entry {
	e := entry{
		id:       fileID{unix.Mkdev(s.Dev_major, s.Dev_minor), s.Ino},
		isFolder: s.Mode&unix.S_IFMT == unix.S_IFDIR,
		linked:   s.Nlink > 1,
		bytes:    int64(s.Blocks) * 512,
		apparent: int64(s.Size),
		owner:    s.Uid,
	}
	writable := len(t.branch) == 0 || s.Uid == t.branch[0].owner || s.Mode&0o022 != 0
	e.setID = isSetID(uint32(s.Mode)) && writable
	e.runs = s.Mode&unix.S_IFMT == unix.S_IFREG && s.Mode&0o111 != 0 && writable
	// A folder with another device number may be a part of the same file system, which its owner can
	// make as he likes (a subvolume); what the kernel calls a mount is not.
	if s.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		e.boundary = s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	} else if len(t.branch) > 0 {
		e.boundary = e.id.dev != t.branch[0].id.dev
	}
	return e
}

// hasCapabilities reports whether a program has capabilities of its own, which a write through a mapping leaves.
func hasCapabilities(path string) bool {
	size, err := unix.Lgetxattr(path, "security.capability", nil)
	return err == nil && size > 0
}

// isSetID reports whether a file is a program that runs with the rights of its owner or group.
func isSetID(mode uint32) bool {
	const groupRuns = unix.S_ISGID | unix.S_IXGRP
	return mode&unix.S_IFMT == unix.S_IFREG && (mode&unix.S_ISUID != 0 && mode&0o111 != 0 || mode&groupRuns == groupRuns)
}
