// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	wroteLog  = regexp.MustCompile(`write(64|v)?\(\d+<[^>]*drover-logs/msgs/\d+\.blk>`)
	syncedLog = regexp.MustCompile(`f(data)?sync\(\d+<[^>]*drover-logs/msgs/\d+\.blk>`)
	reported  = regexp.MustCompile(`write\(1<[^>]*>, "\d+\\n"`)
)

// The embedded server writes an append, syncs it, and only then acknowledges it: in the system calls of a process, each
// report of an acknowledged append comes after a sync that comes after the write.
func TestLog_AcknowledgesWhatIsSynced(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace on this machine")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	inner := child("append", t.TempDir())
	cmd := exec.Command(strace, "-f", "-y", "-s", "8", "-e", "trace=write,pwrite64,writev,fsync,fdatasync", "-o", trace, inner.Path)
	cmd.Env = append(inner.Env, "FLEET_TEST_APPENDS=20")
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ptrace") {
			t.Skipf("strace does not work here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	calls, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	acknowledged, unsynced, synced := 0, 0, 0
	for line := range strings.Lines(string(calls)) {
		switch {
		case wroteLog.MatchString(line):
			unsynced++
		case syncedLog.MatchString(line):
			unsynced, synced = 0, synced+1
		case reported.MatchString(line):
			if acknowledged++; unsynced > 0 || synced == 0 {
				t.Fatalf("append %d was acknowledged with %d writes that were not synced, and %d syncs before it", acknowledged, unsynced, synced)
			}
			synced = 0
		}
	}
	if acknowledged != 20 {
		t.Errorf("the trace has %d acknowledgements, want 20:\n%.2000s", acknowledged, calls)
	}
}
