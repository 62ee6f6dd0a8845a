// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bufio"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/isolation/internal/cgroup"
	"github.com/drover-agents/drover/launch"
)

// holdShell starts a shell in a cell, which lives until the end of the test or of its input.
func holdShell(t *testing.T, i *isolation.Isolation, line string) (launch.Process, *bufio.Reader) {
	t.Helper()
	o := programIn(t.TempDir())
	cell, err := i.Open(t.Context(), o, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cell.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := cell.Spawn(t.Context(), launch.Command{Path: "/bin/sh", Args: []string{"-c", line}, Dir: cell.Inside().Dir, Env: cell.Inside().Environ()})
	if err != nil {
		t.Fatal(err)
	}
	return p, bufio.NewReader(p.Stdout())
}

// Each cell of a program has a control group of its own, not only the first one.
func TestCell_EachHasAControlGroup(t *testing.T) {
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

// A CLI that the kernel ends because of its memory is reported like any other that goes beyond a limit.
func TestCell_OutOfMemoryIsReported(t *testing.T) {
	requireCell(t)
	group, err := cgroup.New("try", cgroup.Limits{Memory: 1 << 30, Processes: 100})
	if err != nil {
		t.Skipf("run as root, or where control groups are delegated: %v", err)
	}
	if err := group.Close(); err != nil {
		t.Fatal(err)
	}
	i := keyed(t.TempDir())
	i.Limits.Memory = 64 << 20
	o := programIn(t.TempDir())
	var breaches atomic.Int64
	cell, err := i.Open(t.Context(), o, isolation.OpenOptions{Emit: func(p event.Payload) {
		if b, ok := p.(isolation.Breach); ok && b.What == "memory" && b.Limit == i.Limits.Memory {
			breaches.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cell.Close() }()
	p, err := cell.Spawn(t.Context(), launch.Command{
		Path: "/bin/sh", Args: []string{"-c", "head -c 1G /dev/zero > /tmp/full"}, Dir: cell.Inside().Dir, Env: cell.Inside().Environ(),
	})
	if err != nil {
		t.Fatal(err)
	}
	status := p.Wait()
	if breach, ok := errors.AsType[*isolation.BreachError](cell.Stopped()); !ok || breach.What != "memory" || breaches.Load() != 1 {
		t.Errorf("after %+v the run was stopped by %v, reported %d times; want a breach of memory, once", status, cell.Stopped(), breaches.Load())
	}
}
