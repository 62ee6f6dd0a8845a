// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and then fails if they left a temporary file or a goroutine. What programs keep in the
// user's state folder goes to a folder of its own, which is removed. Call Main from TestMain; it does not return.
func Main(m *testing.M) { os.Exit(mainCode(m)) }

func mainCode(m *testing.M) int {
	temp, err := os.MkdirTemp("", "drover-tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "claudetest:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(temp) }()
	state, err := os.MkdirTemp("", "drover-tests-state-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "claudetest:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(state) }()
	_ = os.Setenv("XDG_STATE_HOME", state)
	// The slots are shared with other test programs, so they stay in their common folder.
	_ = os.Setenv("DROVER_SLOTS", slotFolder())
	_ = os.Setenv("TMPDIR", temp)
	code := m.Run()
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); code == 0 && len(left) > 0 {
		fmt.Fprintln(os.Stderr, "claudetest: files are left behind:", left)
		code = 1
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "claudetest: goroutines are left behind:", err)
		code = 1
	}
	return code
}
