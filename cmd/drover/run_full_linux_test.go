// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
)

// fill leaves this much room on a disk.
func fill(t *testing.T, dir string, room uint64) {
	t.Helper()
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, disk.Bfree*uint64(disk.Bsize)-room), 0o600); err != nil {
		t.Fatal(err)
	}
}

// On a full disk the answer is printed, no token is given for a conversation that is not stored, and one that was
// stored before stays as it is.
func TestRun_FullDiskLosesNoAnswer(t *testing.T) {
	long := strings.Repeat("It was 7. ", 2000)
	model := claudetest.NewModel(t,
		script.Text("I shall remember."), script.Text(long), script.Text("Hello."),
		script.Text("Still 7.").When(script.Match{Text: "The number is 7."}, script.Match{LastUserText: "Do you remember?"}))
	p := newProgram(t, model.URL())
	state := filepath.Join(p.cli.Root, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no disk of a test can be mounted: %v; run as root", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", state, err)
		}
	})
	p.setEnv(map[string]string{"XDG_STATE_HOME": state})

	first := p.run("run", "--json", "The number is 7.")
	token := lastEvent(t, first.out).Payload.(event.Done).ResumeToken
	if first.code != 0 || token == "" {
		t.Fatalf("exit code %d and token %q with room on the disk: %s", first.code, token, first.errors)
	}
	fill(t, state, 4096) // short lines still fit, and the long one does not

	got := p.run("run", "--quiet", "--resume", token, "Which number?")
	if got.code != 0 || strings.TrimSpace(got.out) != strings.TrimSpace(long) {
		t.Errorf("exit code %d, stdout %.100q; want 0 and the answer", got.code, got.out)
	}
	for _, words := range []string{"drover: the conversation could not be stored, so it cannot be continued: ", advice.Text(syscall.ENOSPC), "\n  next: make room "} {
		if !strings.Contains(got.errors, words) {
			t.Errorf("stderr %q lacks %q", got.errors, words)
		}
	}

	got = p.run("run", "--json", "Hello?")
	done := lastEvent(t, got.out).Payload.(event.Done)
	if got.code != 0 || done.Status != event.DoneSuccess || done.Result != "Hello." || done.ResumeToken != "" {
		t.Errorf("exit code %d, done %+v; want 0, the answer and no token", got.code, done)
	}
	if lost := emitted[event.Error](t, got.out); len(lost) != 1 || lost[0].Code != "CONVERSATION_NOT_KEPT" {
		t.Errorf("the errors are %+v, want that the conversation is not kept", lost)
	}

	if err := os.Remove(filepath.Join(state, "filler")); err != nil {
		t.Fatal(err)
	}
	got = p.run("run", "--quiet", "--resume", token, "Do you remember?")
	if got.code != 0 || got.out != "Still 7.\n" || got.errors != "" {
		t.Errorf("got %+v, want an answer that knows of the first run", got)
	}
}
