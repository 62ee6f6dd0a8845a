// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"path/filepath"
	"slices"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// SettingSources are the settings files of an isolated CLI: those of its home, not the project's, which the agent can write.
func SettingSources() []string { return []string{"user"} }

func settingsFor(o HomeOptions) *claude.SettingsDocument {
	policy, sandbox := o.Network, o.Sandbox
	if policy == nil {
		policy = isolation.NoNetwork()
	}
	if sandbox == nil {
		sandbox = &isolation.Sandbox{}
	}
	s := settingsBuilder{HomeOptions: o, policy: policy, sandbox: sandbox}
	return &claude.SettingsDocument{
		Permissions:           s.permissions(),
		Sandbox:               s.claudeSandbox(),
		SkipWebFetchPreflight: true, // the host it would ask is on no allow-list
	}
}

type settingsBuilder struct {
	HomeOptions
	policy  *isolation.NetworkPolicy
	sandbox *isolation.Sandbox
}

func (s *settingsBuilder) sandboxed() bool {
	return s.Level == isolation.LevelSandbox || s.Level == isolation.LevelCell && s.sandbox.Nested
}

func (s *settingsBuilder) claudeSandbox() *claude.Sandbox {
	out := &claude.Sandbox{
		Enabled:                  new(s.sandboxed()),
		AutoAllowBashIfSandboxed: new(!s.sandbox.AskBeforeBash),
		AllowUnsandboxedCommands: new(s.sandbox.AllowUnsandboxedCommands), // the CLI's own default is true
		ExcludedCommands:         nilIfEmpty(s.sandbox.ExcludedCommands),
		IgnoreViolations:         s.ignored(),
		Network:                  s.network(),
	}
	if !s.sandboxed() {
		return out
	}
	out.FailIfUnavailable = new(true)
	out.Filesystem = s.files()
	out.Credentials = hiddenCredentials()
	if s.sandbox.WeakerNested || s.Level == isolation.LevelCell {
		out.EnableWeakerNestedSandbox = new(true)
	}
	return out
}

// ignored are the refusals that are not reported, whatever the command was.
func (s *settingsBuilder) ignored() map[string][]string {
	all := slices.Concat(s.sandbox.IgnoreFileViolations, s.sandbox.IgnoreNetworkViolations)
	if len(all) == 0 {
		return nil
	}
	return map[string][]string{everyCommand: all}
}

const everyCommand = "*"

func (s *settingsBuilder) network() *claude.SandboxNetwork {
	n := &claude.SandboxNetwork{
		AllowedDomains:   s.domains(),
		StrictAllowlist:  new(true),
		AllowUnixSockets: nilIfEmpty(s.policy.UnixSockets),
		HTTPProxyPort:    port(s.policy.HTTPProxyPort),
		SOCKSProxyPort:   port(s.policy.SOCKSProxyPort),
	}
	if s.policy.AllowAllUnixSockets {
		n.AllowAllUnixSockets = new(true)
	}
	if s.policy.AllowLocalBinding || s.policy.AllowLocalhost {
		n.AllowLocalBinding = new(true)
	}
	if s.Level == isolation.LevelCell { // the cell's own proxy decides
		n.HTTPProxyPort, n.SOCKSProxyPort = port(s.ProxyPort), port(s.SOCKSPort)
	}
	return n
}

// domains always is a list: without one, the CLI would ask.
func (s *settingsBuilder) domains() []string {
	domains := append([]string{}, s.policy.AllowedDomains...)
	if s.policy.AllowLocalhost {
		domains = append(domains, "localhost", "127.0.0.1")
	}
	return domains
}

// files are the paths of the CLI's sandbox. Reading is open by default, so the host's home is denied except what is needed.
func (s *settingsBuilder) files() *claude.SandboxFilesystem {
	f := &claude.SandboxFilesystem{AllowWrite: s.sandbox.Writable(s.Workspace)}
	if s.Level != isolation.LevelCell { // in which they are mounted so
		f.DenyWrite = s.sandbox.Readable(s.Workspace)
	}
	if s.Level == isolation.LevelCell || s.HostHome == "" {
		return f // the host's home is not there
	}
	f.DenyRead = []string{s.HostHome}
	needed := slices.Concat([]string{s.Workspace, s.dir, s.CLI}, s.AddDirs) // in spite of the sandbox settings
	needed = slices.DeleteFunc(needed, func(path string) bool { return path == "" })
	f.AllowRead = slices.Concat(needed, s.sandbox.Writable(s.Workspace), s.sandbox.Readable(s.Workspace))
	return f
}

// permissions keep the tools that the CLI's own sandbox does not confine: those for files, and
// WebFetch. Where a cell or Landlock isolates the CLI, Bash need not ask.
func (s *settingsBuilder) permissions() *claude.SettingsPermissions {
	jailed := s.Level == isolation.LevelCell || s.Level == isolation.LevelLandlock
	switch {
	case jailed && !s.sandboxed() && !s.sandbox.AskBeforeBash:
		return &claude.SettingsPermissions{Allow: []string{"Bash"}}
	case s.Level != isolation.LevelSandbox:
		return nil
	}
	p := &claude.SettingsPermissions{BlockWritesOutside: true, BlockReadsOutside: true}
	p.AdditionalDirectories = slices.Concat(s.sandbox.Writable(s.Workspace), s.sandbox.Readable(s.Workspace))
	for _, path := range s.sandbox.Readable(s.Workspace) { // to be read, not written
		p.Deny = append(p.Deny, "Edit(/"+filepath.ToSlash(path)+"/**)")
	}
	if !s.policy.Open() {
		p.Deny = append(p.Deny, "WebFetch")
	}
	return p
}

func nilIfEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}

func port(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// hiddenCredentials keeps credentials from sandboxed commands, the run's own token included.
func hiddenCredentials() *claude.SandboxCredentials {
	c := &claude.SandboxCredentials{}
	for _, name := range credentialVariables {
		c.EnvVars = append(c.EnvVars, claude.SandboxSecret{Name: name, Mode: "deny"})
	}
	return c
}

func settingsFile(claudeDir string) string { return filepath.Join(claudeDir, "settings.json") }
