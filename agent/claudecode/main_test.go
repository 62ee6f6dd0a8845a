// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
)

// Variables that make the test program a CLI: what it answers to a prompt, the version it prints, a file
// that gets a dot for each time it prints it. A CLI with a version prints it only if it is asked for it.
const (
	turnVariable    = "DROVER_TEST_TURN"
	versionVariable = "DROVER_TEST_VERSION"
	countVariable   = "DROVER_TEST_COUNT"
)

func TestMain(m *testing.M) {
	version, printsVersion := os.LookupEnv(versionVariable)
	answer, answers := os.LookupEnv(turnVariable)
	switch {
	case printsVersion && (!answers || slices.Contains(os.Args, "--version")):
		os.Exit(printVersion(version))
	case answers:
		os.Exit(claudetest.RunScript(func(s *claudetest.ScriptSession) {
			s.Initialize(fmt.Sprintf(`{"claude_code_version":%q}`, map[bool]string{false: claude.PinnedVersion}[printsVersion]))
			s.Turn(answer)
			s.UntilEOF()
		}))
	}
	claudetest.Main(m)
}

func printVersion(version string) (code int) {
	fmt.Println(version)
	if path := os.Getenv(countVariable); path != "" {
		before, _ := os.ReadFile(path)
		if err := os.WriteFile(path, append(before, '.'), 0o600); err != nil {
			return 1
		}
	}
	return 0
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

// impatient passes it on at once that a model is overloaded.
var impatient = gateway.New(&gateway.Options{MaxWait: time.Millisecond})

// newAdapter makes an adapter that runs the real CLI in a cell. The test program itself as the CLI is run
// without isolation and has no model; so is a CLI that a spawner of the test starts.
func newAdapter(t testing.TB, base *claude.Options) *claudecode.Adapter {
	t.Helper()
	here, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case base.Spawner != nil:
		return claudecode.New(base)
	case base.CLIPath == here:
		return claudecode.New(base).In(onHost(t))
	}
	return claudecode.New(base).In(&isolation.Isolation{Gateway: impatient})
}

// onHost is the isolation level host, for a CLI that needs neither protection nor a model.
func onHost(t testing.TB) *isolation.Isolation {
	t.Helper()
	nowhere, err := gateway.Endpoint("http://127.0.0.1:1", gateway.APIKey(claudetest.FakeKey))
	if err != nil {
		t.Fatal(err)
	}
	return &isolation.Isolation{Weakest: isolation.LevelHost, Sandbox: &isolation.Sandbox{Disabled: true}, Upstream: nowhere}
}
