// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/event"
)

// On a disk that has room for the first lines alone, a run has its answer and no token.
func TestResumeToken_FullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("no disk of a test can be mounted: %v; run as root", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	store, err := transcript.NewFileStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	base := claudetest.CLI(t).Options(claudetest.NewModel(t, script.Text("It is 4.")))
	base.Store, base.StoreEager = store, true
	got := record(t, newAdapter(t, base).Run(inTime(t), agent.Request{Prompt: "2 + 2?"}))
	if done := got.done(t); done.Status != event.DoneSuccess || done.Result != "It is 4." || done.ResumeToken != "" {
		t.Errorf("done is %+v, want the answer and no token", done)
	}
	failures := of[event.Error](got)
	if len(failures) != 1 || failures[0].Code != "CONVERSATION_NOT_KEPT" || !failures[0].Recoverable {
		t.Fatalf("the errors are %+v, want that the conversation is not kept", failures)
	}
	if !errors.Is(failures[0].Cause, unix.ENOSPC) {
		t.Errorf("the cause is %v, want a full disk", failures[0].Cause)
	}
}
