// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// mapAttack writes into a file through a mapping, which leaves the set-id bits.
func mapAttack(args []string) {
	file, err := os.OpenFile(args[0], os.O_RDWR, 0)
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		copy(memory, "EVIL!")
		err = unix.Munmap(memory)
	}
	printResult(err)
}

// A set-id program in a writable folder would run what an agent wrote with the rights of its owner.
func TestMounts_SetIDProgramIsRefused(t *testing.T) {
	needCell(t)
	top := testkit.SharedFolder(t)
	work := filepath.Join(top, "work")
	program := filepath.Join(work, "bin", "program")
	plant(t, program, "harmless")
	testkit.PutProgram(t, os.Args[0], work)
	check := func(t *testing.T) {
		t.Helper()
		content, err := os.ReadFile(program)
		info, _ := os.Stat(program)
		if err != nil || string(content) != "harmless" && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("%v: an agent wrote %q, %v", info.Mode(), content, err)
		}
	}
	command := isolation.ExecOptions{Argv: []string{"sh", "-c", attacker("map", "bin/program")}, Program: isolation.Program{Dir: work}}
	for _, mode := range []os.FileMode{0o755 | os.ModeSetuid, 0o755 | os.ModeSetgid} {
		if err := os.Chmod(program, mode); err != nil {
			t.Fatal(err)
		}
		for _, in := range levelsHere() {
			_, err := in.Exec(t.Context(), command)
			if _, breach := errors.AsType[*isolation.BreachError](err); !breach || !strings.Contains(advice.Text(err), program) || !strings.Contains(advice.Text(err), "next: take the bit away") {
				t.Errorf("%v: got %v, want a refusal that names the program", mode, err)
			}
			check(t)
		}
	}
	named := filepath.Join(top, "elsewhere") // writable itself, and no folder above it
	plant(t, named, "harmless")
	for _, only := range []string{program, named} {
		if err := errors.Join(os.Chmod(program, 0o755), os.Chmod(named, 0o755), os.Chmod(only, 0o755|os.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
		o := programIn(work)
		in := &isolation.Isolation{APIKey: "key", TempDir: top, Sandbox: &isolation.Sandbox{WritablePaths: []string{named}}}
		cell, err := in.Open(t.Context(), o, isolation.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cell.Close() }()
		p, err := cell.Spawn(t.Context(), launch.Command{Path: "/bin/sleep", Args: []string{"10"}, Dir: work, Env: cell.Inside().Environ()})
		if err == nil {
			_, _ = io.Copy(io.Discard, p.Stdout())
			p.Wait()
		}
		if breach, _ := errors.AsType[*isolation.BreachError](cell.Stopped()); breach == nil || !strings.Contains(advice.Text(breach), only) {
			t.Errorf("a run was stopped by %v, %v, want a breach that names %s", cell.Stopped(), err, only)
		}
	}
	for _, mode := range []os.FileMode{0o755, 0o644 | os.ModeSetuid, 0o744 | os.ModeSetgid} { // which give no user rights
		if err := os.Chmod(program, mode); err != nil {
			t.Fatal(err)
		}
		if done, err := (*isolation.Isolation)(nil).Exec(t.Context(), command); err != nil || !strings.Contains(string(done.Output), "OPEN") {
			t.Errorf("%v: got %q, %v, want the file written", mode, done.Output, err)
		}
	}
}
