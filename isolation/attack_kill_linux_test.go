// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// holdVariable makes this test program one that holds a cell in the folder that it names, prints the
// cell's home, and waits.
const holdVariable = "ISOLATION_TEST_HOLD"

func init() {
	if dir := os.Getenv(holdVariable); dir != "" {
		fmt.Println(hold(dir))
		time.Sleep(time.Minute)
		os.Exit(1)
	}
}

// hold starts programs in a cell which would live for a minute.
func hold(dir string) string {
	opts := programIn(filepath.Join(dir, "work"))
	cell, err := (&isolation.Isolation{TempDir: dir, APIKey: "key"}).Open(context.Background(), opts, isolation.OpenOptions{})
	if err != nil {
		return err.Error()
	}
	p, err := cell.Spawn(context.Background(), launch.Command{
		Path: "/bin/sh", Args: []string{"-c", "setsid sleep 60 & (setsid nohup sleep 60 &) ; chmod 0 $HOME/.claude; echo ready; sleep 60"},
		Dir: opts.Dir, Env: cell.Inside().Environ(),
	})
	if err != nil {
		return err.Error()
	}
	if line, err := bufio.NewReader(p.Stdout()).ReadString('\n'); err != nil {
		return line + err.Error()
	}
	return cell.Home().Path()
}

// The death of the program that holds a cell is the end of everything in it. The next run removes what
// it could not remove itself.
func TestAttack_KillingTheHostProgramEndsTheCell(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	home := holdAndKill(t, dir, work)
	for end := time.Now().Add(2 * time.Second); len(processesWith(dir)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes are left after two seconds: %q", processesWith(dir))
		}
	}
	if _, err := os.Stat(home); err != nil {
		t.Errorf("the home of a killed program: %v; want it to be left", err)
	}
	opts := programIn(work)
	cell, err := (&isolation.Isolation{TempDir: dir, APIKey: "key"}).Open(t.Context(), opts, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cell.Close() }()
	if left, err := filepath.Glob(home + "*"); err != nil || len(left) > 0 {
		t.Errorf("the next run left %q of the killed one, %v", left, err)
	}
}

// holdAndKill returns the home of a cell whose program was killed.
func holdAndKill(t *testing.T, dir, work string) string {
	t.Helper()
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = []string{holdVariable + "=" + dir, "PATH=" + os.Getenv("PATH")}
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	home := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(home, dir) {
		t.Errorf("no cell is held: %q, %v", line, err)
	}
	if n := len(processesWith(work)); n < 3 {
		t.Errorf("%d processes are in the cell, want three", n)
	}
	_ = program.Process.Kill()
	_ = program.Wait()
	return home
}
