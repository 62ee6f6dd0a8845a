// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/cliinstall"
)

// marker is the variable by which the processes of a test are recognised: all processes of the CLI
// inherit it.
const marker = "DROVER_TEST_RUN"

// CLI gives the test the real, pinned CLI with a home and a temporary directory of its own. It takes
// the CLI of DROVER_CLAUDE, else the one in the .drover folder of the module. If that is missing, npm
// installs it, once for all tests.
//
// CLI waits for one of the machine's slots and releases it at the end of the test. All test programs
// together have one slot for each core, because a start of the CLI costs half a second of a core.
// Tests that use it cannot be parallel.
//
// The test fails at its end if a process of the CLI, or a goroutine started since the call, still runs.
func CLI(t testing.TB) *RealCLI {
	t.Helper()
	return newRealCLI(t, claude.PinnedVersion, func() (string, error) {
		return given("DROVER_CLAUDE", func(i cliinstall.Install) string { return i.Pinned })
	})
}

// OldestCLI is [CLI] with the oldest version that is tested. Its variable is DROVER_CLAUDE_OLDEST.
func OldestCLI(t testing.TB) *RealCLI {
	t.Helper()
	return newRealCLI(t, claude.OldestTested, func() (string, error) {
		return given("DROVER_CLAUDE_OLDEST", func(i cliinstall.Install) string { return i.Oldest })
	})
}

// A RealCLI is the real CLI, as a test may use it.
type RealCLI struct {
	// Path is the executable; Version is what it is pinned to.
	Path, Version string
	// Root is the test's private folder: Home, Config, Temp and Work are in it.
	Root, Home, Config, Temp, Work string

	run string // value of the marker
}

func newRealCLI(t testing.TB, version string, find func() (path string, err error)) *RealCLI {
	t.Helper()
	path, err := find()
	if err != nil {
		t.Fatalf("claudetest: no CLI to test with: %s", advice.Text(err))
	}
	t.Setenv(marker, "") // refuses parallel tests, whose leaks cannot be distinguished
	goroutines := goleak.IgnoreCurrent()
	takeSlot(t)
	cli := &RealCLI{Path: path, Version: version, run: rand.Text()}
	cli.makeFolders(t)
	t.Cleanup(func() { cli.checkLeaks(t, goroutines) })
	return cli
}

// makeFolders makes the private folders. Their names are short because the CLI makes sockets there.
func (c *RealCLI) makeFolders(t testing.TB) {
	t.Helper()
	root, err := os.MkdirTemp("", "drover-")
	if err != nil {
		t.Fatalf("claudetest: %s", advice.Text(err))
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		t.Fatalf("claudetest: %s", advice.Text(err))
	}
	c.Root = root
	for name, dir := range map[string]*string{"home": &c.Home, "config": &c.Config, "tmp": &c.Temp, "work": &c.Work} {
		*dir = filepath.Join(root, name)
		if err := os.Mkdir(*dir, 0o700); err != nil {
			t.Fatalf("claudetest: %s", advice.Text(err))
		}
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(root); err != nil {
			t.Errorf("claudetest: files are left behind: %v", err)
		}
	})
}

// Env is the whole environment of the CLI: private folders, a fake key, the model's address, and PATH
// of the caller.
func (c *RealCLI) Env(baseURL string) map[string]string {
	return map[string]string{
		"PATH":                os.Getenv("PATH"),
		"HOME":                c.Home,
		"CLAUDE_CONFIG_DIR":   c.Config,
		"TMPDIR":              c.Temp,
		"CLAUDE_CODE_TMPDIR":  c.Temp,
		"ANTHROPIC_BASE_URL":  baseURL,
		"ANTHROPIC_API_KEY":   FakeKey,
		"DISABLE_AUTOUPDATER": "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"CLAUDE_CODE_MAX_RETRIES":                  "1",
		"IS_SANDBOX":                               "1",
		marker:                                     c.run,
	}
}

// Options returns options that run this CLI in its work folder against model. The test may change
// them; [RealCLI.SetEnv] adds variables.
func (c *RealCLI) Options(model *Model) *claude.Options {
	return &claude.Options{
		CLIPath:        c.Path,
		Dir:            c.Work,
		Env:            claude.ExactEnv(c.Env(model.BaseURL())),
		SettingSources: []string{},
		StrictMCP:      true,
	}
}

// SetEnv adds variables to the environment of options made by Options.
func (c *RealCLI) SetEnv(o *claude.Options, model *Model, vars map[string]string) {
	env := c.Env(model.BaseURL())
	maps.Copy(env, vars)
	o.Env = claude.ExactEnv(env)
}

// WriteFile writes a file into the work folder and returns its path.
func (c *RealCLI) WriteFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(c.Work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatalf("claudetest: %s", advice.Text(err))
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatalf("claudetest: %s", advice.Text(err))
	}
	return path
}

// checkLeaks fails the test for processes and goroutines left behind, and ends the processes.
func (c *RealCLI) checkLeaks(t testing.TB, goroutines goleak.Option) {
	t.Helper()
	for _, p := range awaitNone(c.run) {
		t.Errorf("claudetest: process %d is left behind: %s", p.pid, p.command)
		p.kill()
	}
	if !t.Failed() { // a test that failed may leave goroutines
		goleak.VerifyNone(t, goroutines)
	}
}

// awaitNone waits for the processes of a run to end and returns those that have not.
func awaitNone(run string) []process {
	deadline := time.Now().Add(2 * time.Second)
	for {
		left := processesOf(run)
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// installed finds or makes the installation, once.
var installed = sync.OnceValues(func() (cliinstall.Install, error) {
	root, err := moduleRoot()
	if err != nil {
		return cliinstall.Install{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return cliinstall.Ensure(ctx, root)
})

// given is the CLI that a variable names, or else the installed one.
func given(variable string, pick func(cliinstall.Install) string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return path, nil
	}
	install, err := installed()
	return pick(install), err
}

// moduleRoot is the nearest folder above the test's that holds a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", advice.Wrap(fmt.Errorf("no go.mod in %s or above it", dir), "run the tests inside a module, or set DROVER_CLAUDE to a CLI")
		}
	}
}
