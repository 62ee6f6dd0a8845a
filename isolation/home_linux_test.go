// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"os"
	"testing"

	"github.com/drover-agents/drover/internal/testuser"
)

func TestHomesOfOrdinaryUsers(t *testing.T) {
	testuser.Rerun(t, "/bin/true", "^(TestWhatTheAgentLockedIsRemovedToo|TestAHomeIsPrivate|TestADeepTreeIsRemovedToo|TestLeftovers.*)$")
}

// An agent can make folders in folders without end. Their removal leaves open files to other runs.
func TestTheRemovalOfADeepTreeTakesFewOpenFiles(t *testing.T) {
	home := newHome(t, t.TempDir())
	makeDeep(t, home.TempDir(), 3000)
	before, most := openFiles(t), 0
	done := make(chan error)
	go func() { done <- home.Close() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			if most > before+200 {
				t.Errorf("%d files were open during the removal, and %d before", most, before)
			}
			return
		default:
			most = max(most, openFiles(t))
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
