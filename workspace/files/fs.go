// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// FS is the file system that tools work on: io/fs with writes. It has one root, and no name leads out of it. Names
// are those of io/fs: relative, with slashes, without "." and ".." segments; "." is the root.
//
// Links that stay inside are followed, save by Lstat, ReadLink, Remove and Rename, which are about the link itself.
// A link that leads out, or has an absolute target, is refused with a [workspace.SecurityError]. Pipes, sockets and
// devices are seen by Lstat and ReadDir, and never opened. A refused call has changed nothing.
//
// A file system is safe for concurrent use. Package filestest is its definition as a test suite. [Glob] and [Grep]
// search one.
type FS interface {
	fs.FS
	fs.ReadFileFS
	fs.ReadDirFS
	fs.StatFS
	fs.ReadLinkFS

	// WriteFile writes a file, and makes the folders above it that are missing. A concurrent reader sees
	// the file as it was or as it is after, never half of it. A file that is there keeps its
	// permissions; one whose owner may not write it is refused with [fs.ErrPermission].
	WriteFile(name string, data []byte, opts *WriteOptions) error
	// Mkdir makes a folder and the missing folders above it. An existing folder stays unchanged.
	Mkdir(name string) error
	// Remove removes a file or a link, or a folder with everything in it. The root is refused.
	Remove(name string) error
	// Rename moves a file, a link or a folder, and makes the missing folders above the new name. A file or a link
	// may replace another file or link; any other existing entry is refused with [fs.ErrExist].
	Rename(oldName, newName string) error
}

// WriteOptions configures one WriteFile. Nil and the zero value replace the content of a file that is there.
type WriteOptions struct {
	// CreateOnly refuses a name that is taken, also by a link that leads nowhere, with [fs.ErrExist].
	CreateOnly bool
	// Append adds to the content of a file that is there. Two appends through one file system both arrive;
	// of two through different ones, or through one and past it, at the same moment one may be lost.
	Append bool
	// Perm are the permissions of a new file. Zero means 0644.
	Perm fs.FileMode
}

// Options are the limits of a file system. Nil and the zero value mean the defaults; a negative number
// means no limit. Each breach is a [LimitError]. Those of names hold for what is made, wherever links lead:
// all that is there can be read and written.
type Options struct {
	// MaxDepth is how many segments a name may have. Zero means 16.
	MaxDepth int
	// MaxSegment is how many characters a segment may have. Zero means 80.
	MaxSegment int
	// MaxRead is how many bytes ReadFile reads. Zero means 32 MiB. Open has no limit.
	MaxRead int64
	// MaxWrite is how large WriteFile may make a file. Zero means 32 MiB.
	MaxWrite int64
}

func (o *Options) withDefaults() Options {
	var full Options
	if o != nil {
		full = *o
	}
	full.MaxDepth = cmp.Or(full.MaxDepth, 16)
	full.MaxSegment = cmp.Or(full.MaxSegment, 80)
	full.MaxRead = cmp.Or(full.MaxRead, 32<<20)
	full.MaxWrite = cmp.Or(full.MaxWrite, 32<<20)
	return full
}

// ErrLimit is what a [LimitError] is, for errors.Is.
var ErrLimit = errors.New("files: over a limit")

// A LimitError means that a call of a file system is over one of its limits.
type LimitError struct {
	// Path is what was refused.
	Path string
	// Option is the field of [Options] that has the limit: "MaxDepth", "MaxSegment", "MaxRead" or "MaxWrite".
	Option string
	// Got is what there is at least, and Limit what there may be.
	Got, Limit int64
}

func (e *LimitError) Error() string {
	units := map[string]string{"MaxDepth": "segments", "MaxSegment": "characters in a segment"}
	unit := cmp.Or(units[e.Option], "bytes")
	return fmt.Sprintf("files: %q has %d %s, more than %d", e.Path, e.Got, unit, e.Limit)
}

// Advice implements [advice.Adviser].
func (e *LimitError) Advice() string { return "take less, or raise Options." + e.Option }

// Is reports whether target is [ErrLimit].
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

var fsKey = tool.NewKey[FS]("files")

// With returns a context that carries a file system, for the tools that are called with it.
func With(ctx context.Context, fsys FS) context.Context { return fsKey.With(ctx, fsys) }

// From returns the file system that a tool's handler works on, and whether there is one: that of [With], or else
// that of the workspace in the context. Writes to the workspace through it belong to the call of [workspace.ToolTx],
// and are rolled back if the call fails.
func From(ctx context.Context) (FS, bool) {
	if fsys, ok := fsKey.From(ctx); ok {
		return fsys, true
	}
	w, ok := workspace.From(ctx)
	if !ok {
		return nil, false
	}
	fsys, err := Of(w)
	return fsys, err == nil
}
