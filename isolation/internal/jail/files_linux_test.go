// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

func init() { roles["empty files"] = emptyFiles }

// emptyFiles makes files in each folder until it may not, at most so many, and reports how many and why.
func emptyFiles() {
	for _, dir := range os.Args[1:] {
		n, err := 0, error(nil)
		for ; n < 5000 && err == nil; n++ {
			err = os.WriteFile(fmt.Sprintf("%s/%d", dir, n), nil, 0o600)
		}
		fmt.Println(dir, n, err != nil && strings.Contains(advice.Text(err), "no space left"))
	}
}

func TestLimits_FilesOfTemporaryFoldersAreBounded(t *testing.T) {
	requireCells(t)
	s := roleSpec(t, "empty files", "/tmp", "/dev/shm")
	s.TempBytes, s.SharedBytes = 6<<20, 1<<20
	// The folder itself is one of them, and the number that was not made any more is counted.
	if diff := cmp.Diff("/tmp 1536 true\n/dev/shm 1024 true", output(t, s)); diff != "" {
		t.Errorf("files made (-want +got):\n%s", diff)
	}
	s = shellSpec("df --output=itotal /tmp /dev/shm /var/tmp | tail -3")
	s.Mounts = []jail.Mount{{Source: t.TempDir(), Target: "/var/tmp/folder"}}
	if diff := cmp.Diff([]string{"262144", "16384", "262144"}, strings.Fields(output(t, s))); diff != "" {
		t.Errorf("files that there may be by default (-want +got):\n%s", diff)
	}
	s.TempBytes = 1 << 50 // no limit
	if diff := cmp.Diff([]string{"1048576", "16384", "1048576"}, strings.Fields(output(t, s))); diff != "" {
		t.Errorf("files that there may be without a limit of bytes (-want +got):\n%s", diff)
	}
	s = shellSpec("cat /dev/shm/file")
	shared := t.TempDir()
	if err := os.WriteFile(filepath.Join(shared, "file"), []byte("of the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Mounts = []jail.Mount{{Source: shared, Target: "/dev/shm"}}
	if got := output(t, s); got != "of the host" {
		t.Errorf("a mount that covers a temporary folder has %q", got)
	}
}
