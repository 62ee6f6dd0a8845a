// SPDX-License-Identifier: Apache-2.0

package leftover

import (
	"path/filepath"
	"testing"
)

func TestStateFolder_OnEachSystem(t *testing.T) {
	for _, c := range []struct{ goos, appData, want string }{
		{"linux", "", "/home/dev/.local/state/drover"},
		{"darwin", "", "/home/dev/Library/Application Support/drover"},
		{"windows", "/appdata", "/appdata/drover"},
		{"windows", "", "/home/dev/.local/state/drover"},
	} {
		if got := stateFolderIn("/home/dev", c.goos, c.appData); filepath.ToSlash(got) != c.want {
			t.Errorf("%s: got %q, want %q", c.goos, got, c.want)
		}
	}
}

func TestStateFolder_XDGStateHomeComesFirst(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	if got, err := StateFolder(); err != nil || got != filepath.Join(dir, "drover") {
		t.Errorf("StateFolder() = %q, %v, want it in %s", got, err, dir)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	if got, err := StateFolder(); err != nil || !filepath.IsAbs(got) {
		t.Errorf("StateFolder() = %q, %v, want a path that is not relative", got, err)
	}
}
