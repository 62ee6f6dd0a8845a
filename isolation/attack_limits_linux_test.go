// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
)

const mebibyte = 1 << 20

// What the kernel limits fails inside, and the run goes on.
func TestLimits_AgentDoesNotExhaustTheMachine(t *testing.T) {
	h := newTarget(t)
	attempts := []attempt{
		bash("many processes", attacker("fork", "300"), `started \d\d?, then .*temporarily unavailable`),
		bash("a large file", "head -c 20000000 /dev/zero > large; ls -l large", `(?i)file (size limit exceeded|too large)`),
		bash("a large temporary file", "errors=$(for n in 1 2 3 4 5 6; do head -c 4000000 /dev/zero > /tmp/large$n; done 2>&1); rm /tmp/large*; echo $errors", `No space left`),
		bash("shared memory", "for n in $(seq 40); do head -c 4000000 /dev/zero > /dev/shm/large$n || break; done; rm /dev/shm/large*", `No space left`),
		bash("still there", "echo still there", `still there`),
	}
	model := h.agent(t, turnsOf(attempts, 1)...)
	in := h.isolation()
	in.Limits = isolation.Limits{Processes: 80, FileSize: 4 * mebibyte, TempBytes: 16 * mebibyte}
	h.check(t, attempts, model, h.run(t, in, nil))
	if info, err := os.Stat(filepath.Join(h.Work, "large")); err != nil || info.Size() > 4*mebibyte {
		t.Errorf("the large file: %v, %v; want at most 4 MiB", info, err)
	}
}

// What the kernel does not limit ends the run: the breach is reported, and the rest of the disk is safe.
func TestLimits_RunAboveItsLimitsIsEnded(t *testing.T) {
	h := newTarget(t)
	added := filepath.Join(h.Root, "second") // both count, and together
	if err := os.Mkdir(added, 0o700); err != nil {
		t.Fatal(err)
	}
	h.agent(t, script.Call("Bash", script.Input{"command": attacker("grow", "100", ".", added)}))
	h.opts.AddDirs = []string{added}
	in := h.isolation()
	in.Limits = isolation.Limits{WorkspaceBytes: 8 * mebibyte}
	got := h.run(t, in, nil)
	h.checkBreach(t, got, 8*mebibyte)
	files, _ := filepath.Glob(filepath.Join(h.Root, "*", "grown-*"))
	if len(files) < 8 || len(files) >= 100 {
		t.Errorf("%d MiB were written, want the end soon after 8", len(files))
	}
	_ = os.RemoveAll(added)
	delete(h.before, added)
	h.unharmed(t)
}

func (h *target) checkBreach(t *testing.T, got record, limit int64) {
	t.Helper()
	breaches := payloads[isolation.Breach](got)
	if len(breaches) != 1 || breaches[0].Limit != limit || breaches[0].Found <= limit {
		t.Errorf("breaches: got %+v, want one of %d", breaches, limit)
	}
	failed := slices.ContainsFunc(payloads[event.Error](got), func(e event.Error) bool { return e.Code == "CELL_LIMIT" && !e.Recoverable })
	if done := got.done(t); done.Status != event.DoneError || !failed {
		t.Errorf("done is %+v, and CELL_LIMIT reported: %v", done, failed)
	}
}

// Memory is limited by the kernel, which ends the process, or by the watchdog, which ends the run.
func TestAttack_AgentCannotExhaustTheMemory(t *testing.T) {
	const limit = 700 * mebibyte
	h := newTarget(t)
	model := h.agent(t,
		script.Call("Bash", script.Input{"command": attacker("allocate", "1200") + "; echo status $?"}),
		script.Text("I am still inside.").Always(), // there is no second turn if the run was ended
	)
	in := h.isolation()
	in.Limits = isolation.Limits{Memory: limit}
	got := h.run(t, in, nil)
	if len(payloads[isolation.Breach](got)) > 0 {
		h.checkBreach(t, got, limit)
	} else if text, _, ok := model.ToolResult("Bash"); !ok || !strings.Contains(text, "137") && !strings.Contains(text, "Killed") {
		t.Errorf("the memory was not limited: %v, %q; done is %+v", ok, text, got.done(t))
	}
	h.unharmed(t)
}

// Two cells of one user: one has used up its processes, the other does not notice.
func TestAttack_CellOutOfProcessesAffectsNoOther(t *testing.T) {
	h := newTarget(t)
	full := filepath.Join(h.Work, "full")
	in := h.isolation()
	in.Limits.Processes = 80
	modest := h.beside(t)
	some := []attempt{bash("as many as are allowed", attacker("fork", "40"), `started 40, then <nil>`)}
	modestModel := modest.agent(t, turnsOf(some, 1)...)
	many := []attempt{bash("many processes", attacker("fork", "300", full), `started \d\d?, then .*unavailable`)}
	model := h.agent(t, turnsOf(many, 1)...)
	var greedy record
	var wg sync.WaitGroup
	wg.Go(func() { greedy = h.run(t, in, nil) })
	awaitFile(t, full)
	got := modest.run(t, in, nil)
	if err := os.Remove(full); err != nil {
		t.Errorf("the first cell did not hold out: %v", err)
	}
	wg.Wait()
	modest.check(t, some, modestModel, got)
	h.check(t, many, model, greedy)
}

// awaitFile waits until a file exists.
func awaitFile(t testing.TB, path string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(fmt.Sprint("no process has made ", path))
		}
	}
}
