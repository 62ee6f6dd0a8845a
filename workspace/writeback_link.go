// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/workspace/internal/filetree"
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

// leadsInside reports whether a link can lead only into the target. A link that climbs after it went down into a
// folder is refused, even if that folder is where it should be: the next write-back could make a link of it.
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
	return filetree.LeadsInside(path.Dir(rel), to, t.linkAt)
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
