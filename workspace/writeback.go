// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/internal/safetext"
)

// WriteBackOptions configures [Workspace.WriteBack]. Nil and the zero value write everything that changed
// back to where it was mounted from.
type WriteBackOptions struct {
	// Dir is a folder of the host below which everything is written that differs from what was mounted,
	// under its path in the workspace. It is made if it is missing. Empty means that each mount goes back
	// to where it came from, and that what is in no mount is not written.
	Dir string
	// DryRun finds out all that would happen, and changes nothing.
	DryRun bool
	// Only are globs of the paths to write, relative to the workspace, with ** for any number of folders. Empty means all.
	Only []string
	// Force takes the workspace's side in conflicts. The host's side is put aside, and named. If Force would have
	// to touch files that were not mounted, the conflict stays.
	Force bool
	// NoDelete leaves on the host what was deleted in the workspace.
	NoDelete bool
	// Git also writes files in the folders of git repositories. Such files can run programs on the host at the next
	// git command: hooks, and settings such as core.fsmonitor and filters. So it is only for agents that may run
	// programs there anyway. Without it, nothing that is named .git or is below that is written or deleted.
	Git bool
	// State is a folder for the journal and for files that are put aside, which no other user can write to. Empty
	// means drover/writeback in $XDG_STATE_HOME, or in ~/.local/state or the equivalent of the system.
	State string
}

// A HostPath is a path of the workspace, and the absolute one of the host that belongs to it.
type HostPath struct {
	Path string `json:"path"`
	Host string `json:"host"`
}

// A SkippedPath is one that a write-back or a patch leaves out, or of which it leaves something out.
type SkippedPath struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// WriteBackResult is what a write-back did, or would do. All lists are in the order of the paths.
type WriteBackResult struct {
	DryRun bool `json:"dryRun,omitzero"`
	// Written are the files, folders and links of the host that were made or changed, and Deleted those that were removed.
	Written []HostPath `json:"written"`
	Deleted []HostPath `json:"deleted"`
	// Skipped are those that differ but are not written, and why.
	Skipped []SkippedPath `json:"skipped,omitempty"`
	// Conflicts are the paths on which the host has changed since it was mounted. They stop everything,
	// unless Force has put the host's side aside.
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// Aside is the folder with the host's sides of conflicts. It stays until the user removes it.
	Aside string `json:"aside,omitzero"`
	// Recovered are the folders of interrupted write-backs that were, or would be, undone or finished before this one.
	Recovered []string `json:"recovered,omitempty"`
}

// String describes the result for people, one line for each path.
func (r WriteBackResult) String() string {
	var b strings.Builder
	if r.DryRun {
		b.WriteString("Nothing was changed; this is what would be:\n")
	}
	for _, dir := range r.Recovered {
		fmt.Fprintf(&b, "recovered %s, where an earlier write-back was cut short\n", safetext.Line(dir))
	}
	for _, p := range r.Written {
		fmt.Fprintf(&b, "written   %s -> %s\n", safetext.Line(p.Path), safetext.Line(p.Host))
	}
	for _, p := range r.Deleted {
		fmt.Fprintf(&b, "deleted   %s -> %s\n", safetext.Line(p.Path), safetext.Line(p.Host))
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "skipped   %s: %s\n", safetext.Line(s.Path), safetext.Line(s.Reason))
	}
	for _, c := range r.Conflicts {
		fmt.Fprintf(&b, "conflict  %s: %s", safetext.Line(c.Path), safetext.Line(c.Reason))
		if c.Aside != "" {
			fmt.Fprintf(&b, "; the host's side is in %s", safetext.Line(c.Aside))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d written, %d deleted, %d skipped, %d conflicts\n", len(r.Written), len(r.Deleted), len(r.Skipped), len(r.Conflicts))
	return b.String()
}

// ErrConflict is what a [ConflictError] is, for errors.Is.
var ErrConflict = errors.New("workspace: the host has changed")

// A ConflictError means that a write-back was refused because the host differs from what was mounted. Nothing was written.
type ConflictError struct{ Conflicts []Conflict }

func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "workspace: nothing was written back, because the host has changed on %d paths:", len(e.Conflicts))
	for _, c := range e.Conflicts {
		fmt.Fprintf(&b, "\n  %s: %s", safetext.Line(c.Path), safetext.Line(c.Reason))
	}
	return b.String()
}

// Advice implements [advice.Adviser].
func (e *ConflictError) Advice() string {
	return "write to another Dir, choose with Only, or set Force to keep the host's side aside"
}

// Is reports whether target is [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// WriteBack applies the changes of the workspace to the host: all of them or, if anything is in the way, none. A crash at
// any moment loses nothing: the next write-back to the same folder undoes a partial one, and so does [RecoverWriteBack].
//
// A path is written if the host still has what was mounted. If it has what the workspace has, there is nothing to
// do. Everything else is a conflict. Permissions that the workspace did not change stay as on the host. Nothing is
// ever written outside of the target, nor behind a link. Pipes, sockets, devices, set-id bits and links that lead
// out of the target are not written, nor are files that the mount left out. AllowedHostRoots hold as for mounts.
//
// Files named .git, in any case, and files below are not written either, unless Git is set: they could run programs
// on the host. That does not hold for other files that programs of the host run when they see them, such as a
// Makefile, nor for repositories without a folder of that name: a bare one is any folder with HEAD, objects and
// refs, and git takes it for a repository when it is called in there (it does not if its setting safe.bareRepository
// is "explicit"). Check the written files before you do that.
func (w *Workspace) WriteBack(ctx context.Context, opts *WriteBackOptions) (WriteBackResult, error) {
	if opts == nil {
		opts = &WriteBackOptions{}
	}
	result := WriteBackResult{DryRun: opts.DryRun}
	if w.tree == nil {
		return result, ErrNoCheckpoints
	}
	w.backs.mu.Lock()
	defer w.backs.mu.Unlock()
	targets, err := w.targets(opts)
	if err != nil {
		return result, err
	}
	defer targets.close()
	state, err := openWriteBackState(ctx, opts.State, targets.dirs(), opts.DryRun)
	if err != nil {
		return result, err
	}
	defer state.close()
	if result.Recovered, err = state.recover(targets.dirs(), opts.DryRun); err != nil {
		return result, err
	}
	now, err := w.tree.Checkpoint(ctx)
	if err != nil {
		return result, err
	}
	defer now.Release()
	changes, err := w.changesToWrite(now)
	if err != nil {
		return result, err
	}
	plan, err := newWriteBackPlan(ctx, w, opts, targets)
	if err != nil {
		return result, err
	}
	if err := plan.make(changes); err != nil {
		return result, err
	}
	return plan.carryOut(result, state)
}

// backs are what a workspace has written back so far, by the way that it went: that is what the host is
// compared with then, and not what was mounted. Nil is what was deleted.
type backs struct {
	mu    sync.Mutex
	sides map[string]*side
	// mounted are the paths of the workspace that were written, and what was mounted there.
	mounted map[string]*File
}

// changesToWrite are the paths that differ from what was mounted, and all that were written back before:
// they may be what was mounted by now.
func (w *Workspace) changesToWrite(now *Checkpoint) ([]Change, error) {
	changes, err := w.tree.Changes(w.base, now)
	if err != nil {
		return nil, err
	}
	left := maps.Clone(w.backs.mounted)
	for _, c := range changes {
		delete(left, c.Path)
	}
	for path, f := range left { // it is again what it was at first
		changes = append(changes, Change{Path: path, Before: f, After: f})
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}
