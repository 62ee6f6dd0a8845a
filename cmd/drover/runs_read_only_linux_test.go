// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// With the state folder on a read-only mount a run has its answer, standard error says that it is not kept, and the runs that are
// there are listed and shown, also one that the journal does not have.
func TestRuns_ReadOnlyStateFolder(t *testing.T) {
	model := claudetest.NewModel(t, script.Text("Hello.").Always())
	p := newProgram(t, model.URL())
	state := filepath.Join(p.cli.Root, "state")
	t.Setenv("XDG_STATE_HOME", state)
	p.setEnv(map[string]string{"XDG_STATE_HOME": state})
	kept := keptRun(t, "old", "Look at the shop.", agenttest.Done(""))
	ready := filepath.Join(state, "ready", "drover") // all folders are there
	if err := errors.Join(os.Remove(filepath.Join(state, "drover", "runs", "journal")), os.MkdirAll(filepath.Join(ready, "runs"), 0o700),
		os.MkdirAll(filepath.Join(ready, "conversations"), 0o700)); err != nil {
		t.Fatal(err)
	}
	// The mount is that of this thread and of the programs that it starts. The thread ends with the test.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		runtime.UnlockOSThread()
		t.Skipf("no mount namespace can be made: %v; run as root", err)
	}
	for _, m := range []struct {
		source, target string
		flags          uintptr
	}{{"", "/", unix.MS_REC | unix.MS_PRIVATE}, {state, state, unix.MS_BIND}, {"", state, unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY}} {
		if err := unix.Mount(m.source, m.target, "", m.flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for _, home := range []string{state, filepath.Join(state, "ready"), filepath.Join(state, "none")} {
		p.setEnv(map[string]string{"XDG_STATE_HOME": home})
		got := p.run("run", "--quiet", "Hello?")
		if got.code != 0 || got.out != "Hello.\n" || strings.Count(got.errors, "read-only file system") != 2 {
			t.Errorf("%s: want the answer, and that neither run nor conversation is kept: %+v", home, got)
		}
		want := "drover: record: the run cannot be kept in " + home
		if home == filepath.Join(state, "none") {
			want = "drover: record: the folder of kept runs: mkdir " + home
		}
		if !strings.Contains(got.errors, want) || !strings.Contains(got.errors, "cannot be continued: ") {
			t.Errorf("%s: standard error is\n%s", home, got.errors)
		}
	}
	p.setEnv(map[string]string{"XDG_STATE_HOME": state})
	if got := p.run("run", "--resume", "0ef2f4fe-3bd4-4e51-a854-2fe38e8820e0", "Hello?"); got.code == 0 || strings.Contains(got.out, "Hello.") {
		t.Errorf("a conversation that is not there is continued: %+v", got)
	}
	if got := p.run("runs"); got.code != 0 || !strings.Contains(got.out, kept[:8]+"  success") || !strings.Contains(got.errors, "the index of "+state) {
		t.Errorf("the runs are %+v", got)
	}
	if got := p.run("runs", "show", "last"); got.code != 0 || !strings.Contains(got.out, "Look at the shop.") {
		t.Errorf("the last run is %+v", got)
	}
	if got := p.run("runs", "rm", "last"); got.code == 0 || !strings.Contains(got.errors, "read-only file system") {
		t.Errorf("removed: %+v", got)
	}
}
