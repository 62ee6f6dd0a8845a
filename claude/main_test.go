// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"os"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
)

// scriptVariable names the script that this test binary plays instead of running tests, so that
// faults that need a real process have one.
const scriptVariable = "DROVER_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if name := os.Getenv(scriptVariable); name != "" {
		os.Exit(claudetest.RunScript(processScripts[name]))
	}
	claudetest.Main(m)
}

// processScripts are the scripts that a test can run in a process of their own.
var processScripts = map[string]claudetest.CLIScript{}
