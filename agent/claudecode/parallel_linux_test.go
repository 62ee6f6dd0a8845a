// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/testkit"
)

// A hundred CLIs at once, each a process of its own, leave no process, no goroutine and no file.
func TestAdapter_HundredParallelRunsLeakNothing(t *testing.T) {
	goroutines := goleak.IgnoreCurrent()
	mark, temp := rand.Text(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	var tasks []agent.Task
	for i := range 100 {
		opts := itself(t, map[string]string{turnVariable: fmt.Sprint("answer ", i), "DROVER_TEST_MARK": mark, "TMPDIR": temp})
		r := newRunner(t, opts, &agent.RunnerOptions{Role: fmt.Sprint("answer ", i)})
		tasks = append(tasks, agent.Task{Runner: r, Request: agent.Request{Prompt: "go", Settings: agent.Settings{Permissions: levels("ddd")}}})
	}
	byRun := map[string]recording{}
	for e := range agent.Parallel(inTime(t), tasks...) {
		byRun[e.RunID] = append(byRun[e.RunID], e)
	}
	if len(byRun) != len(tasks) {
		t.Errorf("there were %d runs, want %d", len(byRun), len(tasks))
	}
	for _, got := range byRun {
		got.check(t)
		if done := got.done(t); done.Status != event.DoneSuccess || done.Result != got[0].Role {
			t.Errorf("the run of %q ended with %+v", got[0].Role, done)
		}
	}
	if left := processesWith(t, mark); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if files, _ := filepath.Glob(filepath.Join(temp, "*")); len(files) > 0 {
		t.Errorf("files are left: %q", files)
	}
	goleak.VerifyNone(t, goroutines)
}

// processesWith are the living processes with this text in their environment. Those that are being
// reaped by the system get a moment.
func processesWith(t testing.TB, mark string) []string {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var found []string
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			if env, _ := os.ReadFile(filepath.Join(dir, "environ")); bytes.Contains(env, []byte(mark)) {
				found = append(found, dir)
			}
		}
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
	}
}

// Most people are not root, and the CLI treats root differently.
func TestConversations_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^(TestCLAUDE004_PermissionsAreModesOfTheRealCLI|TestCLAUDE004_ApproverAnswersTheQuestion|TestDeadline_StopsARun|TestFileTools_CannotConfigureTheCLI|TestResume_PlantedCallsAreNotRun|TestRun_LeavingTheLoopEndsTheCLI)$/(all_allowed|files_allowed|tool_use|pinned)$")
}
