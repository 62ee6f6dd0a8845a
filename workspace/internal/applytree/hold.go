// SPDX-License-Identifier: Apache-2.0

package applytree

import "github.com/drover-agents/drover/workspace/internal/filetree"

// Commit makes a plan final that [Apply] held, and reports whether there was one. It may be killed and
// called again. Until it is called, [Recover] undoes the plan.
func Commit(root *filetree.Root, work string) (Result, bool, error) {
	return reopen(root, work, func(r *run) (Result, error) {
		if r.state == applying && r.j.AllOrNothing {
			if err := r.enter(applied); err != nil {
				return r.result(), err
			}
		}
		return r.resume()
	})
}
