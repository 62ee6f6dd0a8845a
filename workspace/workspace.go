// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// Options configures [Open]. Nil and the zero value make an empty workspace.
type Options struct {
	// Mounts are copied in this order. None makes an empty workspace.
	Mounts []HostMount
	// AllowedHostRoots are the folders of the host below which everything must be that is mounted or written back.
	AllowedHostRoots []string
	// AllowAnyRoot allows every host path. Without it and without roots, mounts are refused.
	AllowAnyRoot bool
	// Session, if there is one, holds the [Record] of the workspace, the [session.Workspace] and the [VirtualFileSystem].
	Session *session.Session
	// TempDir is where the folder is made. Empty means [os.TempDir].
	TempDir string
	// Prefix begins the name of the folder. Empty means [Prefix].
	Prefix string
	// KeepOnClose leaves the folder where it is when the workspace is closed, as [Workspace.Keep] does. If
	// the program is killed, that with the checkpoints, whose name ends in .store, stays too.
	KeepOnClose bool
	// NoCheckpoints leaves out the checkpoints: nothing can be rolled back, compared or written back.
	NoCheckpoints bool
	// KeepFailedShell leaves the files of a command that fails, or is cut off, as the command has left
	// them. All other calls that fail are rolled back.
	KeepFailedShell bool
	// Tree configures the checkpoints. Store and TempDir are chosen by the workspace.
	Tree TreeOptions
	// Logger receives failures that the caller did not cause. Nil discards them.
	Logger *slog.Logger
}

// Prefix begins the names of workspaces.
const Prefix = "drover-workspace-"

// formerPrefix began them in earlier versions.
const formerPrefix = "wink-sdk-"

const previewEntries = 20

// A Preview describes the contents of a mount.
type Preview struct {
	// HostPath and MountPath are those of the mount, ResolvedHost is the absolute path without links.
	HostPath     string `json:"hostPath"`
	ResolvedHost string `json:"resolvedHost"`
	MountPath    string `json:"mountPath"`
	// Entries are the first 20 files and links in order, relative to MountPath. A single file has its host base name.
	Entries []string `json:"entries"`
	// Files, Folders and Links are how many of each there are. The folder at MountPath does not count.
	Files   int `json:"files"`
	Folders int `json:"folders"`
	Links   int `json:"links"`
	// Directory is false for the mount of a single file.
	Directory bool `json:"directory"`
	// BytesCopied is the size of all files. One with several names counts once.
	BytesCopied int64 `json:"bytesCopied"`
}

// A Workspace is a folder that holds copies of mounts, and in which an agent works. It is safe for concurrent use.
//
// The folder is removed by [Workspace.Close], by the garbage collector some time after the Workspace is unreachable,
// or, when the program was killed, by the next [Open] with the same TempDir and Prefix.
type Workspace struct {
	opts     Options
	root     string // absolute, without links
	previews []Preview
	created  time.Time
	tree     *Tree       // nil without checkpoints
	base     *Checkpoint // what was mounted
	views    views       // what sessions know of the files
	backs    backs       // what was written back
	txs      transactions

	holdings *holdings
	forgot   runtime.Cleanup
}

// Open makes a workspace and copies the mounts into it. If it fails, nothing is left behind. It fails with
// a [SecurityError] if something may not be mounted, and with a [BudgetError] if there is too much of it:
// before anything is made, unless the host changes while it is copied or the checkpoints have too little
// room.
func Open(ctx context.Context, opts *Options) (*Workspace, error) {
	if opts == nil {
		opts = &Options{}
	}
	w := &Workspace{opts: *opts, created: time.Now().Round(0).UTC()}
	w.views.ofSession = map[*session.Session]*view{}
	w.backs.sides, w.backs.mounted = map[string]*side{}, map[string]*File{}
	w.opts.Mounts = cloneMounts(opts.Mounts)
	w.opts.Prefix = cmp.Or(w.opts.Prefix, Prefix)
	w.opts.Logger = safelog.Logger(w.opts.Logger)
	roots, err := newHostRoots(&w.opts)
	if err != nil {
		return nil, err
	}
	defer roots.close()
	mounts, err := planMounts(ctx, &w.opts, roots)
	if err != nil {
		return nil, err
	}
	if err := w.make(ctx, mounts); err != nil {
		return nil, err
	}
	return w, nil
}

// make makes the folder and fills it, or leaves nothing behind.
func (w *Workspace) make(ctx context.Context, mounts []*mount) (err error) {
	folder, err := newFolder(&w.opts)
	if err != nil {
		return err
	}
	w.holdings = &holdings{folder: folder}
	done := false
	defer func() { // also when a panic, or the end of the goroutine, keeps it from returning
		if !done {
			err = errors.Join(err, w.holdings.close())
		}
	}()
	w.root = folder.Path()
	if err := w.fill(ctx, mounts); err != nil {
		return err
	}
	if err := w.keepBase(ctx); err != nil {
		return err
	}
	if w.opts.Session != nil && w.tree != nil {
		if err := seedView(ctx, w.opts.Session, w); err != nil {
			return err
		}
	}
	if err := w.record(ctx, w.opts.Session); err != nil {
		return fmt.Errorf("workspace: recording it in the session: %w", err)
	}
	if w.opts.KeepOnClose {
		if err := folder.keep(); err != nil {
			return fmt.Errorf("workspace: keeping %s: %w", w.root, err)
		}
	}
	root := w.root
	openWorkspaces.Store(root, weak.Make(w))
	w.forgot = runtime.AddCleanup(w, func(h *holdings) {
		openWorkspaces.Delete(root)
		_ = h.close() // no caller is left to receive it
	}, w.holdings)
	done = true
	return nil
}

func (w *Workspace) fill(ctx context.Context, mounts []*mount) error {
	root, err := filetree.Open(w.root)
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	defer func() { _ = root.Close() }() // a handle on a folder has nothing to lose
	for _, m := range mounts {
		preview, err := m.copyTo(ctx, root)
		if err != nil {
			return err
		}
		w.previews = append(w.previews, preview)
	}
	return ctx.Err()
}

func (w *Workspace) keepBase(ctx context.Context) error {
	if w.opts.NoCheckpoints {
		return nil
	}
	opts := w.opts.Tree
	opts.Store, opts.TempDir = w.holdings.folder.store(), ""
	opts.Logger = cmp.Or(opts.Logger, w.opts.Logger)
	tree, err := OpenTree(w.root, &opts)
	if err != nil {
		return err
	}
	w.tree, w.holdings.tree = tree, tree
	w.base, err = tree.Checkpoint(ctx)
	return err
}

// Root is the folder in which the agent works. It exists as long as the Workspace is reachable.
func (w *Workspace) Root() string { return w.root }

// Previews describe the contents of the mounts, in their order.
func (w *Workspace) Previews() []Preview {
	previews := slices.Clone(w.previews)
	for i := range previews {
		previews[i].Entries = slices.Clone(previews[i].Entries)
	}
	return previews
}

// Fingerprint is a hash of how the mounts are configured, and not of what they hold: two workspaces with
// the same one were asked for the same things.
func (w *Workspace) Fingerprint() string { return fingerprintOf(w.opts.Mounts) }

// Tree is the folder with its checkpoints, or nil without them. It works as long as the Workspace is reachable.
func (w *Workspace) Tree() *Tree { return w.tree }

// Base is the checkpoint of what was mounted, or nil if the workspace has none.
func (w *Workspace) Base() *Checkpoint { return w.base }

// openWorkspaces are those of this program that are not closed, by their root: weak.Pointer[Workspace].
var openWorkspaces sync.Map

// OfSession returns the workspace of the session that was opened last, of those that are still open in this program,
// and whether there is one.
func OfSession(s *session.Session) (*Workspace, bool) {
	opened := session.Query[Record](s)
	for n := opened.Len() - 1; n >= 0; n-- {
		known, ok := openWorkspaces.Load(opened.At(n).TempDir)
		if !ok {
			continue
		}
		if w := known.(weak.Pointer[Workspace]).Value(); w != nil {
			return w, true
		}
	}
	return nil, false
}

// Closed reports whether Close was called. A closed workspace cannot be worked in, also if its folder is kept.
func (w *Workspace) Closed() bool {
	_, open := openWorkspaces.Load(w.root)
	return !open
}

// Close forgets the checkpoints and removes the folder, unless it is to be kept. Closing twice is harmless.
func (w *Workspace) Close() error {
	openWorkspaces.Delete(w.root)
	w.forgot.Stop()
	return w.holdings.close()
}

// Keep makes Close leave the folder, and the files that rollbacks have put aside beside it. To remove it later, the
// user removes both.
//
// It fails if a later workspace may take the folder for one of a killed program; Close leaves it also then.
func (w *Workspace) Keep() error { return w.holdings.folder.keep() }

// holdings are released when a workspace ends. They have no reference to the Workspace, so that the garbage
// collector sees when it is unreachable.
type holdings struct {
	folder *folder
	tree   *Tree // nil without checkpoints

	once sync.Once
	err  error

	mu       sync.Mutex
	attached map[any]io.Closer
	closed   bool
}

func (h *holdings) close() error {
	h.once.Do(func() {
		if h.tree != nil {
			h.err = h.tree.Close()
		}
		h.err = errors.Join(h.err, h.detach())
		h.err = errors.Join(h.err, h.folder.close())
	})
	return h.err
}

// detach closes what was attached, and lets nothing be attached any more.
func (h *holdings) detach() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	var errs []error
	for _, c := range h.attached {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Attach returns what open makes for a key, the same at each call. The workspace closes it before its folder
// is removed; from then on Attach fails with [fs.ErrClosed]. It is for packages that keep something of their own
// for each workspace: key is of a type of theirs, and what open makes does not have the Workspace.
func (w *Workspace) Attach(key any, open func() (io.Closer, error)) (io.Closer, error) {
	h := w.holdings
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fs.ErrClosed
	}
	if known, ok := h.attached[key]; ok {
		return known, nil
	}
	opened, err := open()
	if err != nil {
		return nil, err
	}
	if h.attached == nil {
		h.attached = map[any]io.Closer{}
	}
	h.attached[key] = opened
	return opened, nil
}

var key = tool.NewKey[*Workspace]("workspace")

// With returns a context in which [From] finds the workspace.
func With(ctx context.Context, w *Workspace) context.Context { return key.With(ctx, w) }

// From returns the workspace that a tool's handler works in, and whether there is one.
func From(ctx context.Context) (*Workspace, bool) { return key.From(ctx) }
