// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"

	"github.com/drover-agents/drover/internal/leftover"
)

// homes are the folders of all homes. The agent does not reach their markers.
var homes = leftover.Kind{
	Prefix: HomePrefix,
	Text:   "The folder of this name without .lock is the private home of a run of Drover.\nBoth are removed when the run ends, or by a later run when the program was killed.\n",
}

// SweepHomes removes the homes in the folder parent (empty means [os.TempDir]) whose programs were
// killed before they could, and returns their paths. It leaves alone what is not surely such a home:
// links, folders without a marker of Drover, what belongs to other users, and homes of living programs.
func SweepHomes(parent string) (removed []string, err error) {
	swept, err := homes.Sweep(parent)
	var problems []error
	if err != nil {
		problems = append(problems, fmt.Errorf("isolation: looking for homes of ended programs: %w\n  next: let this user list the folder, or set Isolation.TempDir to another", err))
	}
	for _, home := range swept {
		if home.Err != nil {
			problems = append(problems, fmt.Errorf("isolation: the home %s of an ended program: %w\n  next: remove it by hand", home.Path, home.Err))
			continue
		}
		removed = append(removed, home.Path)
	}
	return removed, errors.Join(problems...)
}
