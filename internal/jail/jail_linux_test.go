// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/jail"
)

func TestMain(m *testing.M) {
	claudetest.Main(m)
}

func requireCells(t testing.TB) {
	t.Helper()
	if err := jail.Supported(t.Context(), ""); err != nil {
		t.Skipf("%v", err)
	}
}

func ownerOf(t *testing.T, path string) [2]uint32 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return [2]uint32{st.Uid, st.Gid}
}

// checkOwner checks that a path belongs to whom the other belongs to.
func checkOwner(t *testing.T, path, like string) {
	t.Helper()
	if got, want := ownerOf(t, path), ownerOf(t, like); got != want {
		t.Errorf("owner of %s: got %v, want %v as of %s", path, got, want, like)
	}
}
