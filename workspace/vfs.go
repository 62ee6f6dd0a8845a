// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/persist"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/session"
)

// An Encoding is the kind of the bytes of a [VirtualFile].
type Encoding string

// The encodings.
const (
	UTF8   Encoding = "utf-8"
	Binary Encoding = "binary"
)

// A VirtualFile is a regular file of a workspace as the session knows it. Its content is not here but in
// the store of the workspace, by its hash: see [Workspace.Content] and [Workspace.ReadText].
type VirtualFile struct {
	Path Path `json:"path"`
	// Hash is the SHA-256 of the content in hexadecimal.
	Hash      string   `json:"hash"`
	SizeBytes int64    `json:"sizeBytes"`
	Encoding  Encoding `json:"encoding"`
	// Mode has the permission bits.
	Mode fs.FileMode `json:"mode"`
	// Version is 1 for a mounted or created file, and one more for each noticed change of content or permissions.
	Version   int       `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// VirtualFileSystem is the slice of a session that has the regular files of its workspace at the last [Sync], in the
// order of their segments. Folders and links are not in it. It never changes: each event makes a new one, which
// shares nearly all of the old.
type VirtualFileSystem struct {
	files persist.Sorted[Path, VirtualFile]
}

// All yields the files in order.
func (v VirtualFileSystem) All() iter.Seq[VirtualFile] {
	return func(yield func(VirtualFile) bool) {
		for _, f := range v.files.All() {
			if !yield(f) {
				return
			}
		}
	}
}

// Len is the number of files.
func (v VirtualFileSystem) Len() int { return v.files.Len() }

// Get returns a file, and whether there is one.
func (v VirtualFileSystem) Get(path Path) (VirtualFile, bool) { return v.files.Get(path) }

// A FileWrite is whether a [WriteFile] makes a file or changes one.
type FileWrite string

// The ways of writing.
const (
	FileCreated     FileWrite = "create"
	FileOverwritten FileWrite = "overwrite"
)

// WriteFile is the event that a file was made or changed in the workspace.
type WriteFile struct {
	Path Path      `json:"path"`
	Hash string    `json:"hash"`
	Size int64     `json:"size"`
	Mode FileWrite `json:"mode"`
	// Encoding is that of the content. Empty means [Binary].
	Encoding Encoding `json:"encoding,omitzero"`
	// Perm has the permission bits of the file.
	Perm fs.FileMode `json:"perm,omitzero"`
	// At is when it was noticed.
	At time.Time `json:"at,omitzero"`
}

// DeleteFile is the event that a file is gone from the workspace.
type DeleteFile struct {
	Path Path `json:"path"`
}

// EventKind implements [event.Payload].
func (VirtualFileSystem) EventKind() event.Kind { return "workspace:files" }

// EventKind implements [event.Payload].
func (WriteFile) EventKind() event.Kind { return "workspace:file_written" }

// EventKind implements [event.Payload].
func (DeleteFile) EventKind() event.Kind { return "workspace:file_deleted" }

// registerFiles gives a session the slice. The reducers have no effect when they see an event for the
// second time, so it does no harm to register them twice.
func registerFiles(s *session.Session) {
	session.Reduce(s, VirtualFileSystem.written)
	session.Reduce(s, VirtualFileSystem.deleted)
}

func (v VirtualFileSystem) written(e WriteFile) VirtualFileSystem {
	old, known := v.files.Get(e.Path)
	if known && old.Hash == e.Hash && old.Mode == e.Perm {
		return v
	}
	f := VirtualFile{
		Path: e.Path, Hash: e.Hash, SizeBytes: e.Size, Encoding: cmp.Or(e.Encoding, Binary), Mode: e.Perm,
		Version: old.Version + 1, CreatedAt: e.At, UpdatedAt: e.At,
	}
	if known {
		f.CreatedAt = old.CreatedAt
	}
	return v.with(f)
}

func (v VirtualFileSystem) deleted(e DeleteFile) VirtualFileSystem {
	return VirtualFileSystem{v.files.Delete(e.Path)}
}

func (v VirtualFileSystem) with(f VirtualFile) VirtualFileSystem {
	return VirtualFileSystem{v.files.Set(f.Path, f)}
}

type virtualFileSystemWire struct {
	Files []VirtualFile `json:"files"`
}

// MarshalJSON gives the files as a list.
func (v VirtualFileSystem) MarshalJSON() ([]byte, error) {
	return plainjson.Marshal(virtualFileSystemWire{slices.AppendSeq(make([]VirtualFile, 0, v.Len()), v.All())})
}

// UnmarshalJSON reads what MarshalJSON gives.
func (v *VirtualFileSystem) UnmarshalJSON(data []byte) error {
	var w virtualFileSystemWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*v = VirtualFileSystem{}
	for _, f := range w.Files {
		*v = v.with(f)
	}
	return nil
}
