// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/internal/filetree"
)

// refuseLinks takes links out of the plan that lead out of the target.
func (p *writeBackPlan) refuseLinks(t *target) {
	for _, rel := range t.planned() {
		want := t.plan[rel].Want
		if want == nil || want.Kind != filetree.Link || t.leadsInside(rel, want.Target) {
			continue
		}
		delete(t.plan, rel)
		p.skip(t.workspacePath(rel), fmt.Sprintf("is a link that leads out of the target, to %q", want.Target))
	}
}

// leadsInside reports whether a link can lead only to what is in the target. One that climbs after it went
// down into a folder is refused, even if that folder is where it should be: the next write-back could make
// a link of it.
func (t *target) leadsInside(rel, to string) bool {
	down := false
	for name := range strings.SplitSeq(filepath.ToSlash(to), "/") {
		switch {
		case name == ".." && down:
			return false
		case name != ".." && name != "." && name != "":
			down = true
		}
	}
	left := maxLinksFollowed
	_, inside := t.follow(path.Dir(rel), to, &left)
	return inside
}

// follow follows a link as the system will when the plan is carried out. A circle stays inside: it leads
// nowhere.
func (t *target) follow(dir, to string, left *int) (string, bool) {
	if strings.HasPrefix(to, "/") || filepath.IsAbs(to) || filepath.VolumeName(to) != "" {
		return "", false
	}
	for name := range strings.SplitSeq(filepath.ToSlash(to), "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			if dir == "." {
				return "", false
			}
			dir = path.Dir(dir)
			continue
		}
		next := path.Join(dir, name)
		further, isLink := t.linkAt(next)
		if !isLink {
			dir = next
			continue
		}
		if *left--; *left < 0 {
			return dir, true
		}
		var inside bool
		if dir, inside = t.follow(dir, further, left); !inside {
			return "", false
		}
	}
	return dir, true
}

// linkAt is where a link of the plan or of the host leads.
func (t *target) linkAt(rel string) (string, bool) {
	if step := t.plan[rel]; step != nil {
		if step.Want == nil || step.Want.Kind != filetree.Link {
			return "", false
		}
		return step.Want.Target, true
	}
	if t.root == nil {
		return "", false
	}
	e, err := t.root.Lstat(rel)
	return e.Target, err == nil && e.Kind == filetree.Link
}
