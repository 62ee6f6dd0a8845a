// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"path/filepath"
	"strings"
)

// skipGit notes a change in the folder of a repository, if it lies in one, and reports that. There is one
// note for each such folder, because a single commit changes many files in it.
func (p *writeBackPlan) skipGit(t *target, rel string) bool {
	if p.opts.Git {
		return false
	}
	name := t.workspacePath(rel)
	if inGit(filepath.ToSlash(t.dir)) == "" {
		at := inGit(rel)
		if at == "" {
			return false
		}
		name = t.workspacePath(at)
	} else if t.single == "" {
		name = t.mount
	}
	if p.git == nil {
		p.git = map[string]int{}
	}
	p.git[name]++
	return true
}

// nameGit says which changes in folders of repositories are not written.
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

// isDotGit reports whether some file system that git runs on takes a name for ".git": without regard to
// case, with characters that HFS+ ignores, as the short name that Windows gives it, or with an end that
// Windows ignores.
func isDotGit(name string) bool {
	name = strings.ToLower(strings.Map(func(r rune) rune {
		if ignoredByHFS(r) {
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

func ignoredByHFS(r rune) bool {
	return 0x200c <= r && r <= 0x200f || 0x202a <= r && r <= 0x202e || 0x206a <= r && r <= 0x206f || r == 0xfeff
}
