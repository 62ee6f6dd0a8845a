// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/copytree"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// hostRoots are the folders of the host that may be read. Everything is reached through a handle on one of them.
type hostRoots struct {
	any  bool
	dirs []string // absolute, without links
	open map[string]*filetree.Root
}

func newHostRoots(opts *Options) (*hostRoots, error) {
	roots := &hostRoots{any: opts.AllowAnyRoot, open: map[string]*filetree.Root{}}
	for _, dir := range opts.AllowedHostRoots {
		resolved, err := resolveRoot(dir)
		if err != nil {
			return nil, advice.Wrap(fmt.Errorf("workspace: the allowed root %q: %w", dir, err), "name a folder that exists")
		}
		roots.dirs = append(roots.dirs, resolved)
	}
	return roots, nil
}

func resolveRoot(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("it is empty") // and must not mean the current folder by accident
	}
	return realPath(dir)
}

func (r *hostRoots) close() {
	for _, root := range r.open {
		_ = root.Close() // it was only read
	}
}

// find follows the links of a host path to their end, and returns its path in a root. Later links are not followed.
func (r *hostRoots) find(hostPath string) (copytree.Source, error) {
	if !r.any && len(r.dirs) == 0 {
		return copytree.Source{}, &copytree.Refusal{Reason: "is not allowed, because no folder of the host is", Next: "set AllowedHostRoots, or AllowAnyRoot"}
	}
	resolved, err := filepath.EvalSymlinks(hostPath)
	if err != nil {
		return copytree.Source{}, err
	}
	for _, dir := range r.dirs {
		if rel, err := filepath.Rel(dir, resolved); err == nil && filepath.IsLocal(rel) {
			return r.through(dir, rel)
		}
	}
	if !r.any {
		return copytree.Source{}, &copytree.Refusal{
			Reason: fmt.Sprintf("leads to %q, which is outside of the allowed roots %q", resolved, r.dirs),
			Next:   "mount something else, or add its folder to AllowedHostRoots",
		}
	}
	top := filepath.VolumeName(resolved) + string(filepath.Separator)
	rel, err := filepath.Rel(top, resolved)
	if err != nil {
		return copytree.Source{}, err
	}
	return r.through(top, rel)
}

func (r *hostRoots) through(dir, rel string) (copytree.Source, error) {
	root := r.open[dir]
	if root == nil {
		var err error
		if root, err = filetree.OpenStrict(dir); err != nil {
			return copytree.Source{}, err
		}
		r.open[dir] = root
	}
	return copytree.Source{Root: root, Path: filepath.ToSlash(rel)}, nil
}
