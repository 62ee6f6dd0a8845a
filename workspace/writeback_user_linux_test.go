// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace"
)

func TestWriteBack_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^TestWriteBack_(Cases|UnwritableFolder.*|EachMount.*)$")
}

func TestWriteBack_UnwritableFolderIsNamedAndNothingChanges(t *testing.T) {
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
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(advice.Text(err), shut) {
			t.Errorf("dry run %t: %v, want an error that names %s", dry, err, shut)
		}
	}
	want := map[string]string{"a": "0644 1", "shut/": "0555", "shut/b": "0644 1"}
	if diff := cmp.Diff(want, harvest(t, host)); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
}

func TestWriteBack_StateThatOthersCanWriteIsRefused(t *testing.T) {
	host := t.TempDir()
	plant(t, host, map[string]string{"x": "1"})
	w := openOn(t, host, nil)
	plant(t, w.Root(), map[string]string{"p/x": "2"})
	for name, open := range map[string]func(dir string) error{
		"all can write":      func(dir string) error { return os.Chmod(dir, 0o777) },
		"a temporary folder": func(dir string) error { return os.Chmod(dir, 0o777|os.ModeSticky) },
		"a group can write":  func(dir string) error { return os.Chmod(dir, 0o770) },
		"is another user's":  func(dir string) error { return os.Chown(dir, 65534, 65534) },
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			if err := open(state); err != nil {
				t.Skip(err)
			}
			for _, dryRun := range []bool{true, false} {
				_, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state, DryRun: dryRun})
				if !errors.Is(err, workspace.ErrSecurity) {
					t.Errorf("error: %v, want that of security", err)
				}
			}
			if _, err := workspace.RecoverWriteBack(t.Context(), state); !errors.Is(err, workspace.ErrSecurity) {
				t.Errorf("recovery: %v, want that of security", err)
			}
			if got := harvest(t, state); len(got) > 0 {
				t.Errorf("there is %v now", got)
			}
		})
	}
}
