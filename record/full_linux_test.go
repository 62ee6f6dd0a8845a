// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/record"
)

// fullStore has the folder for a small file system in a mount namespace of the child.
const fullStore = "DROVER_TEST_FULL"

// The disk fills while runs are recorded. Runs that were acknowledged are there, none is damaged, and answers are not withheld.
func TestRecorder_DiskFills(t *testing.T) {
	if dir := os.Getenv(fullStore); dir != "" { // the child, which sees the small file system
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=900k,mode=700"); err != nil {
			t.Fatal(err)
		}
		store, err := record.Open(filepath.Join(dir, "runs"))
		if err != nil {
			t.Fatal(err)
		}
		cmd, out := startChild(t, store)
		got := readChild(out)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if len(got["ended"]) == 0 || len(got["refused"])+len(got["not-recorded"]) == 0 || len(got["failed"]) > 0 {
			t.Errorf("%d runs ended, %d were not kept, and %d failed: want a full disk and all answers", len(got["ended"]), len(got["refused"])+len(got["not-recorded"]), len(got["failed"]))
		}
		checkStore(t, store, got)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRecorder_DiskFills$", "-test.v")
	cmd.Env = []string{fullStore + "=" + t.TempDir(), "TMPDIR=" + t.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(err.Error(), "operation not permitted") {
		t.Skip("this machine gives no user namespaces: run as a user who may have one")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
