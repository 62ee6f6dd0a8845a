// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"log/slog"
	"time"

	"github.com/drover-agents/drover/session"
)

// A HostMount is a file or folder of the host that is copied into a workspace. Only HostPath is needed.
type HostMount struct {
	// HostPath is the file or folder. A relative one begins at the current folder.
	HostPath string
	// MountPath is where it is put, relative to the workspace. Empty means the base name of HostPath.
	MountPath string
	// Include are globs of the files to copy, relative to HostPath, with ** for any number of folders.
	// Empty means all.
	Include []string
	// Exclude are globs of what is left out, also of what Include names. An excluded folder is not
	// entered.
	Exclude []string
	// MaxBytes bounds what is copied. Nil means no limit, and zero nothing.
	MaxBytes *int64
	// FollowSymlinks copies what links lead to, as long as it is within the allowed roots, in place of
	// refusing those that lead out of the mount and copying the others as links.
	FollowSymlinks bool
}

// Options configures [Open]. The zero value makes an empty workspace.
type Options struct {
	Mounts []HostMount
	// AllowedHostRoots are the folders of the host below which everything must be that is mounted.
	AllowedHostRoots []string
	// AllowAnyRoot allows every host path. Without it and without roots, mounts are refused.
	AllowAnyRoot bool
	// Session, if there is one, holds the [Record] of the workspace, the [session.Workspace] and the
	// [VirtualFileSystem].
	Session *session.Session
	// TempDir is where the folder is made. Empty means [os.TempDir].
	TempDir string
	// Prefix begins the name of the folder. Empty means [Prefix].
	Prefix string
	// KeepOnClose leaves the folder where it is when the workspace is closed.
	KeepOnClose bool
	// NoCheckpoints leaves out the checkpoints: nothing can be rolled back, compared or written back.
	NoCheckpoints bool
	// Tree configures the checkpoints. Store and TempDir are chosen by the workspace.
	Tree TreeOptions
	// Logger hears of what is not the caller's fault. Nil discards that.
	Logger *slog.Logger
}

// Prefix begins the names of workspaces.
const Prefix = "wink-sdk-"

// A Preview tells what a mount has brought.
type Preview struct {
	// HostPath and MountPath are those of the mount, ResolvedHost is the absolute path without links.
	HostPath     string `json:"hostPath"`
	ResolvedHost string `json:"resolvedHost"`
	MountPath    string `json:"mountPath"`
	// Entries are the first 20 files in order, relative to MountPath.
	Entries []string `json:"entries"`
	// Files, Folders and Links are how many of each there are.
	Files   int `json:"files"`
	Folders int `json:"folders"`
	Links   int `json:"links"`
	// Directory is false for the mount of a single file.
	Directory bool `json:"directory"`
	// BytesCopied is the size of all files.
	BytesCopied int64 `json:"bytesCopied"`
}

// A Workspace is a folder that holds copies of mounts, and in which an agent works. It is safe for
// concurrent use.
type Workspace struct {
	opts     Options
	root     string // absolute, without links
	previews []Preview
	created  time.Time
	tree     *Tree       // nil without checkpoints
	base     *Checkpoint // what was mounted
	views    views       // what sessions know of the files
}

// Open makes a workspace and copies the mounts into it. If it fails, nothing is left behind.
func Open(ctx context.Context, opts *Options) (*Workspace, error) { return nil, errNotYet }

// Root is the folder in which the agent works.
func (w *Workspace) Root() string { return w.root }

// Previews tell what the mounts have brought, in their order.
func (w *Workspace) Previews() []Preview { return w.previews }

// Tree is the folder with its checkpoints, or nil if the workspace has none.
func (w *Workspace) Tree() *Tree { return w.tree }

// Base is the checkpoint of what was mounted, or nil if the workspace has none.
func (w *Workspace) Base() *Checkpoint { return w.base }

// Close removes the folder. Closing twice is harmless.
func (w *Workspace) Close() error { return errNotYet }
