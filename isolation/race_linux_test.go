// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
)

// A raceGround is the workspace of an agent: a folder docs/inner in it, and links to a private folder of the
// host that has the same below it.
type raceGround struct{ top, work, host string }

func newRaceGround(t *testing.T) raceGround {
	t.Helper()
	top := testkit.SharedFolder(t)
	g := raceGround{top, filepath.Join(top, "work"), filepath.Join(top, "host")}
	plant(t, filepath.Join(g.work, "docs", "inner", "file"), "harmless\n")
	plant(t, filepath.Join(g.host, "file"), "secret\n")
	plant(t, filepath.Join(g.host, "inner", "file"), "secret\n")
	if err := os.Chmod(g.host, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(g.host, filepath.Join(g.work, "link")); err != nil {
		t.Fatal(err)
	}
	testkit.PutProgram(t, os.Args[0], g.work)
	return g
}

// exchangeAttack exchanges two names until it is killed, now at once and now after a while: a start takes some
// milliseconds, and each part of it is to be met.
func exchangeAttack(args []string) {
	_ = os.WriteFile("begun", nil, 0o600)
	for n := 0; ; n++ {
		_ = unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], unix.RENAME_EXCHANGE)
		time.Sleep(time.Duration(n%13) * time.Millisecond / 2)
	}
}

// exchanging has an agent in the workspace that exchanges docs and the link until the test ends.
func (g raceGround) exchanging(t *testing.T, in *isolation.Isolation) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = in.Exec(ctx, isolation.ExecOptions{Argv: []string{"sh", "-c", "exec env " + attacker("exchange", "docs", "link")}, Program: isolation.Program{Dir: g.work}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	for deadline := time.Now().Add(20 * time.Second); ; {
		if _, err := os.Stat(filepath.Join(g.work, "begun")); err == nil || time.Now().After(deadline) {
			return
		}
	}
}

// race runs a command again and again, each time in a cell of its own, and checks that it saw nothing of the host.
func (g raceGround) race(t *testing.T, in *isolation.Isolation, o isolation.ExecOptions) {
	t.Helper()
	ran, refused := 0, 0
	for deadline := time.Now().Add(20 * time.Second); ran < 15 && time.Now().Before(deadline); {
		done, err := in.Exec(t.Context(), o)
		if err != nil { // which is how a difference ends
			refused++
			continue
		}
		ran++
		if strings.Contains(string(done.Output), "secret") {
			t.Fatalf("a folder of the host was shown: %q", done.Output)
		}
		if made, _ := filepath.Glob(filepath.Join(g.host, "*made*")); len(made) > 0 {
			t.Fatalf("a folder of the host was written: %v", made)
		}
	}
	if ran == 0 {
		t.Errorf("all %d were refused, so that nothing was tried", refused)
	}
}

// A completion command has a folder to read below one that the agent can exchange.
func TestMounts_CommandBesideAnExchangingAgentSeesNothingOfTheHost(t *testing.T) {
	needCell(t)
	g := newRaceGround(t)
	g.exchanging(t, nil)
	in := &isolation.Isolation{Sandbox: &isolation.Sandbox{ReadablePaths: []string{"docs/inner"}}}
	g.race(t, in, isolation.ExecOptions{Argv: []string{"sh", "-c", "for n in $(seq 40); do cat docs/inner/file link/inner/file; done; touch docs/made docs/inner/made"}, Program: isolation.Program{Dir: g.work}})
}

// A second agent works in a folder of the first one's, which exchanges it.
func TestMounts_AgentBelowAnExchangingAgentSeesNothingOfTheHost(t *testing.T) {
	needCell(t)
	for _, in := range levelsHere() {
		g := newRaceGround(t)
		g.exchanging(t, in)
		g.race(t, in, isolation.ExecOptions{Argv: []string{"sh", "-c", "cat file inner/file; touch made"}, Program: isolation.Program{Dir: filepath.Join(g.work, "docs")}})
	}
}

// A link that an agent has left is not followed to the working directory, nor to a folder that is named. One that
// no agent can have made is, and so is the folder in which this program runs.
func TestMounts_PlantedLinkIsNoWorkingDirectory(t *testing.T) {
	needCell(t)
	g := newRaceGround(t)
	planted := filepath.Join(g.work, "link")
	for _, in := range levelsHere() {
		for _, dir := range []string{planted, filepath.Join(planted, "inner")} {
			_, err := in.Exec(t.Context(), isolation.ExecOptions{Argv: []string{"cat", "file"}, Program: isolation.Program{Dir: dir}})
			if err == nil || !strings.Contains(advice.Text(err), planted+" is a symbolic link, which an agent may have made") || !strings.Contains(advice.Text(err), "\n  next: name the folder that the link leads to: "+g.host) {
				t.Errorf("%s: got %v, want a refusal", dir, err)
			}
		}
	}
	i := isolation.Isolation{APIKey: "key", TempDir: g.top}
	if cell, err := i.Open(t.Context(), programIn(planted), isolation.OpenOptions{}); err == nil {
		t.Error("a cell was opened", cell.Close())
	}
	other := filepath.Join(g.top, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	i.Sandbox = &isolation.Sandbox{ReadablePaths: []string{planted}}
	if cell, err := i.Open(t.Context(), programIn(other), isolation.OpenOptions{}); err == nil || !strings.Contains(advice.Text(err), "is a link to "+g.host) {
		t.Errorf("as a readable path of another agent: got %v, %v, want a refusal", cell, err)
	}
	trusted := g.top + "-link" // in /tmp, which no agent gets
	if err := os.Symlink(g.work, trusted); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(trusted) }()
	t.Chdir(filepath.Join(trusted, "docs"))
	for _, dir := range []string{filepath.Join(trusted, "docs"), ""} {
		if code, output := shell(t, nil, dir, "pwd -P; cat inner/file"); code != 0 || output != filepath.Join(g.work, "docs")+"\nharmless\n" {
			t.Errorf("in %q: got %d, %q", dir, code, output)
		}
	}
}
