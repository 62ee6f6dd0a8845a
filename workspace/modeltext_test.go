// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"testing"
)

func TestModelText_FailedCalls(t *testing.T) {
	r := Restored{Error: "x", RolledBack: RolledBack{Restored: []string{"a", "b"}, Conflicts: []Conflict{{Path: "b"}, {Path: "b"}}}}
	for got, want := range map[string]string{
		r.text(): "This call failed, and its changes were rolled back: `a`. Repeat the changes that you still need. " +
			"Other changes prevented a clean rollback of these paths: `b`. Read them again before you use them. " +
			"Some changes of this call could not be rolled back. Read the files that it may have changed before you use them.",
		callRejected(errors.New("the store is full\n  more")): "Error: call rejected: no checkpoint could be taken: the store is full. " +
			"The tool did not run. Try again once; if that fails too, report this error.",
	} {
		if got != want {
			t.Errorf("the model reads %q, want %q", got, want)
		}
	}
}
