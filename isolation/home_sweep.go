// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/leftover"
)

// homes are the folders of homes with a prefix, and of those that have the default one, now or in earlier versions. The
// agent does not reach their markers.
func homes(prefix string) leftover.Kind {
	return leftover.Kind{
		Prefix: cmp.Or(prefix, HomePrefix), Former: []string{HomePrefix, "claude-agent-"},
		Text: "The folder of this name without .lock is the private home of a run of Drover.\nBoth are removed when the run ends, or by a later run when the program was killed.\n",
	}
}

// SweepHomes removes the homes in the folder parent (empty means [os.TempDir]) whose programs were
// killed before they could, and returns their paths. Their names begin with the prefix, with [HomePrefix], or as
// those of earlier versions did. It leaves alone what is not surely such a home:
// links, folders without a marker of Drover, what belongs to other users, and homes of living programs.
func SweepHomes(parent, prefix string) (removed []string, err error) {
	swept, err := homes(prefix).Sweep(parent)
	var problems []error
	if err != nil {
		problems = append(problems, advice.Wrap(fmt.Errorf("isolation: looking for homes of ended programs: %w", err),
			"let this user list the folder, or set Isolation.TempDir to another"))
	}
	for _, home := range swept {
		if home.Err != nil {
			problems = append(problems, advice.Wrap(fmt.Errorf("isolation: the home %s of an ended program: %w", home.Path, home.Err), "remove it by hand"))
			continue
		}
		removed = append(removed, home.Path)
	}
	return removed, errors.Join(problems...)
}
