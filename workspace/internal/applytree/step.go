// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// ErrSurprise is returned by [Apply] for a plan that is all or nothing, if something is not as the planner
// saw it. The tree is then what it was before.
var ErrSurprise = errors.New("applytree: the tree is not as the plan expects it")

// ErrUnfinished is returned by [Apply] if the work folder has the journal of a plan that was cut short.
var ErrUnfinished = advice.Wrap(errors.New("applytree: an earlier plan was cut short"), "call Recover")

// A Step is the wanted state of one path. If a folder goes, the plan also has a step for everything in it: other
// entries there count as surprises.
type Step struct {
	Path string
	// Want is the wanted entry; nil means nothing. Files, folders, links and pipes can be made.
	Want *filetree.Entry
	// Write writes the content of a file. Nil means that the content is right as it is, and only the
	// rest is set; the file stays the same inode.
	Write func(dst *os.File) error
	// Hash is the SHA-256 of the content in hexadecimal, so that recovery can check what was staged.
	// Empty leaves the check out.
	Hash string
	// Link is another path of the plan or of the tree: the file is a hard link to it.
	Link string
	// From is a path of the plan where the file is now: it is moved. Write is needed all the same, in case the file
	// was touched. Empty means that it was not moved.
	From string
	// Expect is what is there now, as the planner saw it; nil means nothing.
	Expect *filetree.Entry
}

// Options configures [Apply].
type Options struct {
	// AllOrNothing refuses the whole plan if anything is not as expected, and undoes everything if
	// there is trouble later. False applies what can be applied and reports the rest.
	AllOrNothing bool
	// Hold leaves a plan that is all or nothing open when it is applied, so that several of them can
	// count together: [Commit] makes it final, and [Recover] undoes it.
	Hold bool
	// Work is a folder outside of the tree for the journal, for staged files, and for entries that are put aside.
	// It is made if it is missing. On another file system than the tree, everything costs a copy.
	Work string
}

// Result is what became of a plan.
type Result struct {
	// Done are the paths that are as wanted, sorted.
	Done []string
	// Conflicts are the surprises and the failed paths, sorted by path. A path that was done all the same, with the
	// surprise put aside, is in both lists.
	Conflicts []Conflict
	// Aside is the folder with everything that was taken out of the tree, under its path. Empty if nothing was.
	Aside string
	// Undone reports that the tree is what it was before the plan.
	Undone bool
}

// A Conflict is a path with which something is wrong.
type Conflict struct {
	Path, Reason string
	// Aside is the path of the side that is not in the tree. Empty if there is no such side.
	Aside string
}

// sorted checks the steps as far as that needs no tree, and returns them with folders before what is in them.
func sorted(steps []Step) ([]Step, error) {
	steps = slices.Clone(steps)
	slices.SortFunc(steps, func(a, b Step) int { return strings.Compare(a.Path, b.Path) })
	for i := range steps {
		s := &steps[i]
		if i > 0 && steps[i-1].Path == s.Path {
			return nil, badStep(s, "is in the plan twice")
		}
		if problem := s.problem(); problem != "" {
			return nil, badStep(s, problem)
		}
	}
	return steps, nil
}

func badStep(s *Step, problem string) error {
	return fmt.Errorf("applytree: step for %q %s", s.Path, problem)
}

func (s *Step) problem() string {
	switch {
	case !validPath(s.Path):
		return "has a path that is not relative and clean"
	case s.Path == "." && (s.Want == nil || s.Want.Kind != filetree.Dir):
		return "would take the root away"
	case s.Want == nil:
		return ""
	case s.Link != "" && (s.Want.Kind != filetree.File || !validPath(s.Link)):
		return "is a hard link but not a file"
	case s.Want.Kind == filetree.File && s.Write == nil && s.Link == "" && !isKind(s.Expect, filetree.File):
		return "has no content"
	case s.From != "" && (s.Want.Kind != filetree.File || s.Write == nil):
		return "moves a file without its content"
	}
	return ""
}

func validPath(p string) bool {
	return p != "" && path.Clean(p) == p && !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../")
}

func isKind(e *filetree.Entry, k filetree.Kind) bool { return e != nil && e.Kind == k }
