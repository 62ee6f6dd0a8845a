// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// skipGit notes a change in the folder of a repository, if it is in one, and reports that. There is one note for
// each such folder, because a single commit changes many files in it.
func (p *writeBackPlan) skipGit(t *target, rel string) bool {
	if p.opts.Git {
		return false
	}
	name := t.workspacePath(rel)
	if inGit(filepath.ToSlash(t.dir)) == "" && !p.withinBare(t.dir) {
		at := inGit(rel)
		if bare := p.inBare(t, rel); bare != "" && (at == "" || len(bare) < len(at)) {
			at = bare
		}
		if at == "" {
			return false
		}
		name = t.workspacePath(at)
	} else if t.single == "" {
		name = t.mount
	}
	p.git[name]++
	return true
}

// inBare is the part of a path up to the first folder that git takes for a repository although it is not named ".git", or
// empty. The files of the host and of the workspace count together: a file may complete those of the other side.
func (p *writeBackPlan) inBare(t *target, rel string) string {
	if t.single != "" {
		return ""
	}
	repository := func(at string) bool {
		return p.isBare(t.host(at), filepath.Join(p.w.root, filepath.FromSlash(t.workspacePath(at))))
	}
	if repository(".") {
		return "."
	}
	for end := 0; end < len(rel); end++ {
		end += strings.IndexByte(rel[end:]+"/", '/')
		if repository(rel[:end]) {
			return rel[:end]
		}
	}
	return ""
}

// withinBare reports whether a folder of the host is a repository, or in one.
func (p *writeBackPlan) withinBare(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if p.isBare(dir) {
			return true
		}
		if filepath.Dir(dir) == dir {
			return false
		}
	}
}

// isBare reports whether folders together are a repository for git: HEAD, and objects and refs or, as in a worktree,
// the name of the folder that has them. The first is the host's; if that has a ".git", git looks no further.
func (p *writeBackPlan) isBare(dirs ...string) bool {
	key := strings.Join(dirs, "\x00")
	if bare, known := p.bare[key]; known {
		return bare
	}
	has := func(name string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool {
			_, err := os.Lstat(filepath.Join(dir, name))
			return err == nil
		})
	}
	_, own := os.Lstat(filepath.Join(dirs[0], ".git"))
	p.bare[key] = own != nil && has("HEAD") && (has("commondir") || has("objects") && has("refs"))
	return p.bare[key]
}

// nameGit lists the changes in folders of repositories that are not written.
func (p *writeBackPlan) nameGit() {
	for name, n := range p.git {
		changes := fmt.Sprintf("%d changes", n)
		if n == 1 {
			changes = "1 change"
		}
		p.skip(name, "belongs to a git repository, which can run programs on the host; "+changes+" not written, because Git is not set")
	}
}

// inGit is the part of a path up to the first element that git takes for ".git", or empty.
func inGit(name string) string {
	for start := 0; start <= len(name); {
		end := start + strings.IndexByte(name[start:]+"/", '/')
		if isDotGit(name[start:end]) {
			return name[:end]
		}
		start = end + 1
	}
	return ""
}

// isDotGit reports whether some file system that git runs on takes a name for ".git": without regard to case, with
// characters that HFS+ ignores, as the short name that Windows gives it, or with an end that Windows ignores.
func isDotGit(name string) bool {
	name = strings.ToLower(strings.Map(func(r rune) rune {
		if 0x200c <= r && r <= 0x200f || 0x202a <= r && r <= 0x202e || 0x206a <= r && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, name))
	for _, part := range strings.Split(name, `\`) {
		part, _, _ = strings.Cut(part, ":")
		if part = strings.TrimRight(part, ". "); part == ".git" || part == "git~1" {
			return true
		}
	}
	return false
}
