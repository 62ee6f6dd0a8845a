// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/internal/pathglob"
	"github.com/drover-agents/drover/workspace/internal/copytree"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A target is a folder of the host, and the part of the workspace that goes there.
type target struct {
	dir string // absolute, without links
	// root looks at the folder and changes nothing in it, not even permissions for a moment. It is nil if
	// the folder is not there. writer is for applying the plan.
	root, writer *filetree.Root
	// missing is the part of dir that has to be made, below the folder above.
	missing string
	above   *filetree.Root
	// mount is the path in the workspace that goes to the folder. "." is all of it.
	mount string
	// single is the name of the one file that was mounted, or empty.
	single string
	// export means that the host need not have what was mounted.
	export  bool
	leftOut *pathglob.Matcher

	plan map[string]*plannedStep // by path in the folder
}

// inside gives the path in the target's folder of a path of the workspace, if it goes there.
func (t *target) inside(name string) (string, bool) {
	switch {
	case t.mount == ".":
		return name, true
	case name == t.mount && t.single != "":
		return t.single, true
	case name == t.mount:
		return ".", true
	case t.single == "" && strings.HasPrefix(name, t.mount+"/"):
		return name[len(t.mount)+1:], true
	}
	return "", false
}

func (t *target) workspacePath(rel string) string {
	if t.single != "" {
		return t.mount
	}
	return path.Join(t.mount, rel)
}

func (t *target) host(rel string) string { return filepath.Join(t.dir, filepath.FromSlash(rel)) }

// way names a path of the workspace and where it goes. Two mounts of one folder have two ways to a file.
func (t *target) way(rel string) string { return t.workspacePath(rel) + "\x00" + t.host(rel) }

// targets are where a write-back goes. No two of them have a path of the workspace in common.
type targets struct {
	all   []*target
	roots *hostRoots
}

func (ts *targets) close() {
	for _, t := range ts.all {
		for _, root := range []*filetree.Root{t.root, t.above, t.writer} {
			if root != nil {
				_ = root.Close()
			}
		}
	}
	ts.roots.close()
}

func (ts *targets) dirs() []string {
	var dirs []string
	for _, t := range ts.all {
		dirs = append(dirs, t.dir)
	}
	return dirs
}

// of finds the target of a path of the workspace, and the path in its folder.
func (ts *targets) of(name string) (*target, string) {
	for _, t := range ts.all {
		if rel, ok := t.inside(name); ok {
			return t, rel
		}
	}
	return nil, ""
}

func (w *Workspace) targets(opts *WriteBackOptions) (*targets, error) {
	roots, err := newHostRoots(&w.opts)
	if err != nil {
		return nil, err
	}
	ts := &targets{roots: roots}
	if opts.Dir != "" {
		err = ts.addDir(opts.Dir)
	} else {
		err = ts.addMounts(w)
	}
	for _, t := range ts.all {
		if err == nil && filetree.Holds(w.root, t.dir) {
			err = &SecurityError{Path: t.dir, Reason: "is in the workspace itself", Next: "write back to a folder of the host"}
		}
	}
	if err != nil {
		ts.close()
		return nil, err
	}
	return ts, nil
}

// addDir takes a folder that may be missing.
func (ts *targets) addDir(dir string) error {
	resolved, missing, err := resolveMissing(dir)
	if err != nil {
		return fmt.Errorf("workspace: writing back to %q: %w", dir, err)
	}
	t := &target{dir: resolved, mount: ".", export: true}
	ts.all = append(ts.all, t)
	if err := ts.open(t, dir); err != nil || missing == "." {
		return err
	}
	t.dir, t.missing = t.host(missing), missing
	t.above, t.root = t.root, nil
	return nil
}

// resolveMissing follows the links of a path as far as it exists, and returns that and the rest of it.
func resolveMissing(name string) (resolved, missing string, err error) {
	name, err = filepath.Abs(name)
	if err != nil {
		return "", "", err
	}
	missing = "."
	resolved, err = filepath.EvalSymlinks(name)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(name) != name {
		missing = path.Join(filepath.Base(name), missing)
		name = filepath.Dir(name)
		resolved, err = filepath.EvalSymlinks(name)
	}
	return resolved, missing, err
}

// create makes the folder if it is missing, and opens it for writing.
func (t *target) create() error {
	checked, at := t.root, "."
	if t.missing != "" {
		checked, at = t.above, t.missing
		if err := t.above.MkdirAll(t.missing, 0o755); err != nil {
			return fmt.Errorf("workspace: making the folder %q: %w", t.dir, err)
		}
	}
	var err error
	if t.writer, err = filetree.Open(t.dir); err != nil {
		return fmt.Errorf("workspace: opening the folder %q: %w", t.dir, err)
	}
	return sameEntry(t.dir, t.writer, ".", checked, at)
}

// sameEntry makes sure that two ways lead to the same.
func sameEntry(name string, a *filetree.Root, aPath string, b *filetree.Root, bPath string) error {
	one, err := a.Lstat(aPath)
	if err != nil {
		return err
	}
	other, err := b.Lstat(bPath)
	if err != nil {
		return err
	}
	if one.Stamp.Dev != other.Stamp.Dev || one.Stamp.Ino != other.Stamp.Ino {
		return &SecurityError{Path: name, Reason: "was exchanged for something else", Next: "look who does that, and try again"}
	}
	return nil
}

// uncreate removes the folders again that create made, as long as nothing is in them.
func (t *target) uncreate() {
	for dir := t.missing; dir != "" && dir != "."; dir = path.Dir(dir) {
		if t.above.Remove(dir) != nil {
			return
		}
	}
}

func (ts *targets) addMounts(w *Workspace) error {
	for i, p := range w.previews {
		m := w.opts.Mounts[i]
		leftOut, err := pathglob.New(atAnyDepth(m.Include), atAnyDepth(m.Exclude))
		if err != nil {
			return err
		}
		t := &target{dir: p.ResolvedHost, mount: p.MountPath, leftOut: leftOut}
		if !p.Directory {
			t.dir, t.single = filepath.Split(p.ResolvedHost)
			t.dir = filepath.Clean(t.dir)
		}
		ts.all = append(ts.all, t)
		if err := ts.open(t, p.HostPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// open gets a handle on the folder of a target. It makes sure that the folder is within the allowed roots
// and still where it was, and that it is the one that the handle is on.
func (ts *targets) open(t *target, name string) error {
	resolved, err := filepath.EvalSymlinks(t.dir)
	if err != nil {
		return fmt.Errorf("workspace: writing back to %q: %w", name, err)
	}
	if resolved != t.dir {
		return &SecurityError{Path: name, Reason: fmt.Sprintf("leads to %q now, and led to %q before", resolved, t.dir), Next: "look who has put a link there"}
	}
	allowed := t.allowed()
	way, err := ts.roots.find(allowed)
	if refused, ok := errors.AsType[*copytree.Refusal](err); ok {
		return &SecurityError{Path: name, Reason: refused.Reason, Next: "add its folder to AllowedHostRoots, or write to another Dir"}
	}
	if err != nil {
		return fmt.Errorf("workspace: writing back to %q: %w", name, err)
	}
	if found := filepath.Join(way.Root.Dir(), filepath.FromSlash(way.Path)); found != allowed {
		return &SecurityError{Path: name, Reason: fmt.Sprintf("leads to %q now, and led to %q before", found, allowed), Next: "look who has put a link there"}
	}
	root, err := filetree.OpenStrict(t.dir)
	if err != nil {
		return fmt.Errorf("workspace: writing back to %q: %w", name, err)
	}
	reached := "."
	if allowed != t.dir {
		reached = t.single
	}
	err = sameEntry(name, root, reached, way.Root, way.Path)
	if err != nil {
		_ = root.Close()
		return err
	}
	t.root = root
	return nil
}

// allowed is what must be within the allowed roots: of a single file only the file itself, if it is there.
func (t *target) allowed() string {
	if t.single != "" {
		if _, err := filepath.EvalSymlinks(t.host(t.single)); err == nil {
			return t.host(t.single)
		}
	}
	return t.dir
}
