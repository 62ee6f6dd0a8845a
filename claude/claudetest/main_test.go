// SPDX-License-Identifier: Apache-2.0

package claudetest_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
)

// scriptVariable names the script that this test binary plays instead of running tests.
const scriptVariable = "DROVER_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if name := os.Getenv(scriptVariable); name != "" {
		os.Exit(claudetest.RunScript(processScripts[name]))
	}
	claudetest.Main(m)
}

// leaveVariable says what TestHelper_Leaves leaves behind, in a test binary of its own.
const leaveVariable = "DROVER_TEST_LEAVE"

func TestHelper_Leaves(t *testing.T) {
	switch os.Getenv(leaveVariable) {
	case "file":
		if _, err := os.CreateTemp("", "left-"); err != nil {
			t.Fatal(err)
		}
	case "goroutine":
		go func() { select {} }()
	case "failure":
		t.Error("this test fails")
	}
}

func TestMain_ReportsFilesAndGoroutinesLeftBehind(t *testing.T) {
	cases := []struct {
		leave string
		code  int
		says  string
	}{
		{"nothing", 0, "PASS"},
		{"file", 1, "claudetest: files are left behind: ["},
		{"goroutine", 1, "claudetest: goroutines are left behind: "},
		{"failure", 1, "this test fails"},
	}
	for _, c := range cases {
		t.Run(c.leave, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "-test.run=^TestHelper_Leaves$")
			cmd.Env = append(os.Environ(), leaveVariable+"="+c.leave)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != c.code || !strings.Contains(string(out), c.says) {
				t.Errorf("exit code %d and\n%s\nwant code %d and %q", got, out, c.code, c.says)
			}
		})
	}
}
