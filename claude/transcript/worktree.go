// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// worktreeLimit bounds the call of git: a listing never hangs on a slow disk.
const worktreeLimit = 5 * time.Second

// openKeys opens the projects directory and returns the directories in it that o selects; both nil without such a directory.
func (o Options) openKeys(ctx context.Context) (*projects, []string, error) {
	p, err := openProjects(o.Dir)
	if errors.Is(err, ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	keys, err := o.projectKeys(ctx, p)
	if err != nil {
		p.Close()
		return nil, nil, err
	}
	return p, keys, nil
}

// projectKeys returns the directories below projects that o selects, without duplicates.
func (o Options) projectKeys(ctx context.Context, p *projects) ([]string, error) {
	if o.Project == "" {
		return p.keys()
	}
	if name := o.dirName(); name != "" {
		return []string{name}, nil
	}
	paths := []string{o.Project}
	if !o.NoWorktrees {
		paths = append(paths, worktrees(ctx, o.Project)...)
	}
	var keys []string
	for _, path := range paths {
		for _, key := range p.keysLike(ProjectKey(path)) {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys, ctx.Err()
}

// worktrees returns the paths of all worktrees of dir's repository; none where git is missing,
// slow, or dir is not a repository.
func worktrees(ctx context.Context, dir string) []string {
	ctx, cancel := context.WithTimeout(ctx, worktreeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "worktree", "list", "--porcelain")
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") })
	cmd.Env = append(cmd.Env, "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return parseWorktrees(string(out))
}

func parseWorktrees(out string) []string {
	var paths []string
	for line := range strings.Lines(out) {
		if path, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "worktree "); ok && path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}
