// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// Variables that make the test program a CLI: one that prints a version, or one that has a turn.
const (
	versionVariable = "DROVER_TEST_VERSION"
	turnVariable    = "DROVER_TEST_TURN"
)

func TestMain(m *testing.M) {
	if version, ok := os.LookupEnv(versionVariable); ok {
		fmt.Println(version)
		os.Exit(0)
	}
	if answer, ok := os.LookupEnv(turnVariable); ok {
		os.Exit(claudetest.RunScript(func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Turn(answer)
			s.UntilEOF()
		}))
	}
	claudetest.Main(m)
}

// itself are options whose CLI is the test program, with these variables and no others.
func itself(t testing.TB, env map[string]string) *claude.Options {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &claude.Options{CLIPath: path, Env: claude.ExactEnv(env)}
}
