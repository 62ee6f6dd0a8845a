// SPDX-License-Identifier: Apache-2.0

package filetree

import "io/fs"

// A Kind is what an entry is.
type Kind uint8

// The kinds of entries. Only files, folders, links and pipes can be made again.
const (
	File Kind = iota
	Dir
	Link // a symbolic one
	Pipe
	Socket
	Device
)

// String returns "file", "folder", "link", "pipe", "socket" or "device".
func (k Kind) String() string {
	return [...]string{"file", "folder", "link", "pipe", "socket", "device"}[k]
}

// Type is the kind as io/fs spells it.
func (k Kind) Type() fs.FileMode {
	return [...]fs.FileMode{0, fs.ModeDir, fs.ModeSymlink, fs.ModeNamedPipe, fs.ModeSocket, fs.ModeDevice}[k]
}

// KindOf returns the kind of a mode.
func KindOf(mode fs.FileMode) Kind {
	switch {
	case mode.IsRegular():
		return File
	case mode.IsDir():
		return Dir
	case mode&fs.ModeSymlink != 0:
		return Link
	case mode&fs.ModeNamedPipe != 0:
		return Pipe
	case mode&fs.ModeSocket != 0:
		return Socket
	}
	return Device
}

// An Entry is one file, folder or link, as it was when it was looked at. Its content is elsewhere.
type Entry struct {
	// Path is relative to the root, with slashes. "." is the root itself.
	Path string
	Kind Kind
	// Perm has the permission bits, and those for set-id and sticky, as io/fs spells them.
	Perm fs.FileMode
	// Size is that of a file, and zero for all else.
	Size int64
	// ModTime is in nanoseconds since 1970.
	ModTime int64
	// Target is where a link leads.
	Target string
	// UID and GID are the owner; zero where the system has none.
	UID, GID uint32
	// Xattrs are the extended attributes of the user namespace, encoded so that equal ones are equal.
	// Empty means none, and also that the system has none.
	Xattrs string
	// Stamp shows whether the entry was touched since.
	Stamp Stamp
}

// A Stamp changes whenever an entry is written, replaced, or given other attributes, and cannot be set back. Two
// writes within one tick of the clock may leave the same stamp; see [Racy].
type Stamp struct {
	Dev, Ino, Links uint64
	// Changed is the time of the last change of the inode, in nanoseconds since 1970.
	Changed int64
}

// Same reports whether two entries have equal restorable metadata: everything but the content, the path and the stamp.
func (e Entry) Same(other Entry) bool {
	e.Path, e.Stamp = other.Path, other.Stamp
	return e == other
}

// Untouched reports whether the entry was not touched between the two reads.
func (e Entry) Untouched(later Entry) bool { return e == later }
