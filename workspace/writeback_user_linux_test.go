// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/internal/testuser"
	"github.com/drover-agents/drover/workspace"
	"github.com/google/go-cmp/cmp"
)

func TestAnOrdinaryUserWritesBackTheSameWay(t *testing.T) {
	testuser.Rerun(t, "/bin/true", "^(TestWriteBack|TestAFolderThatCannotBeWrittenTo.*|TestEachMount.*)$")
}

func TestAFolderThatCannotBeWrittenToIsNamedAndNothingIsChanged(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	host := t.TempDir()
	plant(t, host, map[string]string{"a": "1", "shut/b": "1"})
	w := openOn(t, host, nil)
	plant(t, w.Root(), map[string]string{"p/a": "2", "p/shut/b": "2"})
	shut := filepath.Join(host, "shut")
	must(t, os.Chmod(shut, 0o555))
	t.Cleanup(func() { _ = os.Chmod(shut, 0o755) })
	for _, dry := range []bool{true, false} {
		_, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: t.TempDir(), DryRun: dry})
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), shut) {
			t.Errorf("dry run %t: %v, want an error that names %s", dry, err, shut)
		}
	}
	want := map[string]string{"a": "0644 1", "shut/": "0555", "shut/b": "0644 1"}
	if diff := cmp.Diff(want, harvest(t, host)); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
}
