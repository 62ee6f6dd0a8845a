// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/isolation"
)

func newHome(t *testing.T, parent string) *isolation.Home {
	t.Helper()
	home, err := claudecell.NewHome(parent, claudecell.HomeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Close() })
	return home
}

func TestHome_Paths(t *testing.T) {
	home := newHome(t, t.TempDir())
	for _, test := range []struct{ name, got, want string }{
		{"ConfigDir", home.ConfigDir(), ".claude"},
		{"SettingsPath", claudecell.SettingsPath(home), ".claude/settings.json"},
		{"SkillsDir", claudecell.SkillsDir(home), ".claude/skills"},
		{"TempDir", home.TempDir(), "tmp"},
	} {
		if want := filepath.Join(home.Path(), filepath.FromSlash(test.want)); test.got != want {
			t.Errorf("%s = %s, want %s", test.name, test.got, want)
		}
		if info, err := os.Stat(test.got); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v, want it private", test.name, info, err)
		}
	}
}
