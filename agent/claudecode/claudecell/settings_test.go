// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/isolation"
)

func TestSettings_OfAHome(t *testing.T) {
	type options = claudecell.HomeOptions
	everything := isolation.Sandbox{
		WritablePaths: []string{"out", "/srv/cache"}, ReadablePaths: []string{"/srv/data"},
		ExcludedCommands: []string{"docker"}, AllowUnsandboxedCommands: true, AskBeforeBash: true, WeakerNested: true,
		IgnoreFileViolations: []string{"/tmp/noise"}, IgnoreNetworkViolations: []string{"telemetry.example"},
	}
	network := isolation.NetworkPolicy{
		AllowedDomains: []string{"example.com", "*.example.org"}, AllowLocalhost: true, AllowLocalBinding: true,
		UnixSockets: []string{"/run/x.sock"},
	}
	own := isolation.NetworkPolicy{HTTPProxyPort: 3128, SOCKSProxyPort: 1080, AllowAllUnixSockets: true}
	nested := isolation.Sandbox{Nested: true, WritablePaths: []string{"/srv/cache"}}
	on := func(o options) options {
		o.Workspace, o.HostHome, o.CLI = "/work/project", "/home/ada", "/home/ada/.local/bin/claude"
		o.ProxyPort, o.SOCKSPort = 8118, 8119
		return o
	}
	tests := map[string]options{
		"cell":             {},
		"cell_everything":  {Sandbox: &everything, Network: &network},
		"nested":           {Sandbox: &nested},
		"landlock":         {Level: landlock, Network: isolation.WithDomains("example.com")},
		"sandbox":          {Level: sandbox},
		"sandbox_all":      {Level: sandbox, Sandbox: &everything, Network: &network, AddDirs: []string{"/work/more"}},
		"sandbox_open":     {Level: sandbox, Network: isolation.WithDomains("*")},
		"sandbox_ownproxy": {Level: sandbox, Network: &own},
		"host":             {Level: host, Sandbox: &isolation.Sandbox{Disabled: true}, Network: isolation.WithDomains("*")},
	}
	for name, o := range tests {
		t.Run(name, func(t *testing.T) {
			home, err := claudecell.NewHome(t.TempDir(), on(o))
			if err != nil {
				t.Fatal(err)
			}
			defer home.Close()
			content, err := os.ReadFile(claudecell.SettingsPath(home))
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, filepath.Join("testdata", "settings", name+".json"), strings.ReplaceAll(string(content), home.Path(), "HOME"))
		})
	}
}

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestSettings_OfTheProjectAreNotReadInACell(t *testing.T) {
	if diff := cmp.Diff([]string{"user"}, claudecell.SettingSources()); diff != "" {
		t.Errorf("SettingSources (-want +got):\n%s", diff)
	}
}
