// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/isolation/internal/landlock"
)

// The texts of a Protection, for each level and for what the machine really offers.
func TestProtection_DescribesEachLevel(t *testing.T) {
	unlimited := Limits{Memory: -1, Processes: -1, FileSize: -1, CPUTime: -1, OpenFiles: -1, WorkspaceBytes: -1, WorkspaceFiles: -1, FreeSpace: -1}
	wide := &NetworkPolicy{AllowedDomains: []string{"example.org", "*.example.com"}, AllowedPorts: []int{443}, AllowLocalhost: true, UnixSockets: []string{"/run/db.sock"}}
	kernel := landlock.Enforced{
		ABI: 7, Holds: []string{"files: the rules hold"},
		Open: []landlock.Gap{{What: "UDP", Filterable: true}, {What: "processes of the host can be seen"}},
	}
	excluded := &Sandbox{ExcludedCommands: []string{"docker"}, AllowUnsandboxedCommands: true, WritablePaths: []string{"/srv/cache"}}
	tests := map[string]facts{
		"cell":             {isolation: &Isolation{}, group: true, guarded: true},
		"cell_watched":     {isolation: &Isolation{Limits: Limits{Memory: 512 << 20}}, byName: true},
		"cell_unlimited":   {isolation: &Isolation{Limits: unlimited}, group: true, guarded: true},
		"cell_network":     {isolation: &Isolation{Network: wide}, group: true, guarded: true},
		"cell_nested":      {isolation: &Isolation{Sandbox: &Sandbox{Nested: true, ExcludedCommands: []string{"docker"}}}, group: true, notes: []string{"a home of before could not be removed"}},
		"landlock":         {level: LevelLandlock, isolation: &Isolation{}, landlock: kernel},
		"landlock_grouped": {level: LevelLandlock, isolation: &Isolation{Network: &NetworkPolicy{HTTPProxyPort: 3128}}, landlock: kernel, group: true},
		"sandbox":          {level: LevelSandbox, isolation: &Isolation{}},
		"sandbox_excluded": {level: LevelSandbox, isolation: &Isolation{Sandbox: excluded}},
		"host":             {level: LevelHost, isolation: Development()},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			w := f.describe()
			if w.Level != f.level {
				t.Errorf("level: got %s, want %s", w.Level, f.level)
			}
			text := fmt.Sprintf("enforced:\n  %s\nmissing:\n  %s\n", strings.Join(w.Enforced, "\n  "), strings.Join(w.Missing, "\n  "))
			checkWords(t, filepath.Join("testdata", "protection", name+".txt"), text)
		})
	}
}

func TestProtection_StatesTheMemoryLimit(t *testing.T) {
	for group, want := range map[bool]string{true: "kept by the kernel", false: "watched"} {
		described := facts{isolation: &Isolation{}, group: group}.describe()
		if !slices.ContainsFunc(described.Enforced, func(s string) bool { return strings.HasPrefix(s, "memory: ") && strings.Contains(s, want) }) {
			t.Errorf("control group %v: enforced %q, want memory %s", group, described.Enforced, want)
		}
	}
}

func TestProtection_DescribesTheNetworkPolicy(t *testing.T) {
	for _, test := range []struct {
		policy NetworkPolicy
		want   string
	}{
		{NetworkPolicy{}, "tools reach nothing"},
		{NetworkPolicy{AllowedDomains: []string{"example.org"}, AllowedPorts: []int{443}}, "tools reach example.org:443 through the proxy"},
		{NetworkPolicy{AllowedDomains: []string{"example.org"}}, "tools reach example.org through the proxy"},
		{NetworkPolicy{AllowedDomains: []string{"example.org"}, AllowedPorts: []int{}}, "tools reach nothing"},
		{NetworkPolicy{AllowedDomains: []string{"a.example", "*"}}, "tools reach every public host through the proxy"},
		{NetworkPolicy{AllowLocalhost: true}, "tools reach servers on the loopback of the machine through the proxy"},
		{NetworkPolicy{HTTPProxyPort: 3128, SOCKSProxyPort: 1080}, "tools reach what your proxy lets through (HTTP at port 3128, SOCKS at port 1080)"},
	} {
		if got := test.policy.inWords(); got != "network: "+test.want {
			t.Errorf("%+v: got %q, want %q", test.policy, got, test.want)
		}
	}
}
