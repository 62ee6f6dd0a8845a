// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bufio"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/cgroup"
	"github.com/drover-agents/drover/isolation"
)

// holdShell starts a shell in a cell, which lives until the end of the test or of its input.
func holdShell(t *testing.T, i *isolation.Isolation, line string) (claude.Process, *bufio.Reader) {
	t.Helper()
	o := claude.Options{Dir: t.TempDir()}
	cell, err := i.Open(t.Context(), &o, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cell.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := o.Spawner.Spawn(t.Context(), claude.Command{Path: "/bin/sh", Args: []string{"-c", line}, Dir: o.Dir, Env: o.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	return p, bufio.NewReader(p.Stdout())
}

// Each cell of a program has a control group of its own, not only the first one.
func TestEachCellHasAControlGroup(t *testing.T) {
	requireCell(t)
	group, err := cgroup.New("try", cgroup.Limits{Memory: 1 << 30, Processes: 100})
	if err != nil {
		t.Skipf("run as root, or where control groups are delegated: %v", err)
	}
	if err := group.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 3 {
		_, out := holdShell(t, keyed(t.TempDir()), `tr '\n' ' ' < /proc/self/cgroup; echo; read line`)
		groups, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(groups, "drover.") || seen[groups] {
			t.Errorf("a cell is in %q, want a group of its own", groups)
		}
		seen[groups] = true
	}
}
