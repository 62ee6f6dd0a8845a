// SPDX-License-Identifier: Apache-2.0

//go:build darwin || linux

package transcript_test

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// limitFileSize makes writes beyond a size fail, as a full disk does.
func limitFileSize(text string) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n})
	}
}

func TestFileStore_FailedAppendLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	out, err := child(t, dir, "c", "TRANSCRIPT_TEST_LIMIT=25000").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "transcript: appending to -p/"+id1) {
		t.Fatalf("child = %v, %s; want it to fail at the size limit", err, out)
	}
	got, err := newFileStore(t, dir).Load(t.Context(), storeKey)
	if err != nil || len(got) == 0 || len(got)%childBatchSize != 0 {
		t.Errorf("Load = %d entries, %v; want whole batches only", len(got), err)
	}
}
