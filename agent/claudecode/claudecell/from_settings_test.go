// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

func TestFromSettings_SandboxSettingsMeanTheSame(t *testing.T) {
	tests := []struct {
		name     string
		settings claude.Sandbox
		sandbox  isolation.Sandbox
		network  isolation.NetworkPolicy
	}{
		{"nothing", claude.Sandbox{}, isolation.Sandbox{}, isolation.NetworkPolicy{}},
		{
			"everything off",
			claude.Sandbox{Enabled: new(false), AutoAllowBashIfSandboxed: new(false)},
			isolation.Sandbox{Disabled: true, AskBeforeBash: true},
			isolation.NetworkPolicy{},
		},
		{
			"everything",
			claude.Sandbox{
				Enabled: new(true), FailIfUnavailable: new(true), AutoAllowBashIfSandboxed: new(true), AllowUnsandboxedCommands: new(true), ExcludedCommands: []string{"docker"},
				EnableWeakerNestedSandbox: new(true), IgnoreViolations: map[string][]string{"*": {"/tmp/x", "h.example"}},
				Filesystem: &claude.SandboxFilesystem{AllowWrite: []string{"/w"}, AllowRead: []string{"/r"}},
				Network: &claude.SandboxNetwork{
					AllowedDomains: []string{"a.example"}, StrictAllowlist: new(false), AllowUnixSockets: []string{"/s"}, AllowAllUnixSockets: new(true), AllowLocalBinding: new(true),
					HTTPProxyPort: new(1), SOCKSProxyPort: new(2),
				},
			},
			isolation.Sandbox{
				AllowUnsandboxedCommands: true, ExcludedCommands: []string{"docker"}, WeakerNested: true, WritablePaths: []string{"/w"}, ReadablePaths: []string{"/r"},
				IgnoreFileViolations: []string{"/tmp/x"}, IgnoreNetworkViolations: []string{"h.example"},
			},
			isolation.NetworkPolicy{AllowedDomains: []string{"a.example"}, UnixSockets: []string{"/s"}, AllowAllUnixSockets: true, AllowLocalBinding: true, HTTPProxyPort: 1, SOCKSProxyPort: 2},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sandbox, network, err := claudecell.FromSettings(test.settings)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.sandbox, sandbox); diff != "" {
				t.Errorf("sandbox (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&test.network, network); diff != "" {
				t.Errorf("network (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromSettings_SettingsOnlyForTheCLIAreRefused(t *testing.T) {
	for name, settings := range map[string]claude.Sandbox{
		"Ripgrep":          {Ripgrep: &claude.SandboxRipgrep{Command: "rg"}},
		"DeniedDomains":    {Network: &claude.SandboxNetwork{DeniedDomains: []string{"x"}}},
		"DenyRead":         {Filesystem: &claude.SandboxFilesystem{DenyRead: []string{"/x"}}},
		"IgnoreViolations": {IgnoreViolations: map[string][]string{"npm": {"/x"}}},
		"Extra":            {Extra: map[string]any{"x": 1}},
	} {
		_, _, err := claudecell.FromSettings(settings)
		checkRefused(t, err, "Sandbox settings", name)
	}
}
