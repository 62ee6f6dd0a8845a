// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"

	"github.com/drover-agents/drover/internal/plainjson"
)

// Sandbox configures the CLI's own sandbox, which confines the Bash tool alone: file tools such as Write ignore it. A nil
// pointer or list leaves the CLI's settings as they are, so that false and the empty list can be set too.
//
// With permission mode "bypassPermissions" the model can leave the sandbox, unless
// AllowUnsandboxedCommands is false and Network.StrictAllowlist is true.
type Sandbox struct {
	// Enabled switches the sandbox on. Nil means the CLI's settings, which default to off.
	Enabled *bool `json:"enabled,omitzero"`
	// FailIfUnavailable makes the CLI refuse to start where the sandbox cannot work. Nil means
	// true when the sandbox is enabled; the CLI's own default is false.
	FailIfUnavailable *bool `json:"failIfUnavailable,omitzero"`
	// AutoAllowBashIfSandboxed lets sandboxed commands run without asking.
	AutoAllowBashIfSandboxed *bool `json:"autoAllowBashIfSandboxed,omitzero"`
	// AllowUnsandboxedCommands lets the model ask for a command outside. Nil means true.
	AllowUnsandboxedCommands *bool `json:"allowUnsandboxedCommands,omitzero"`
	// ExcludedCommands run outside the sandbox.
	ExcludedCommands []string            `json:"excludedCommands,omitzero"`
	Network          *SandboxNetwork     `json:"network,omitzero"`
	Filesystem       *SandboxFilesystem  `json:"filesystem,omitzero"`
	Credentials      *SandboxCredentials `json:"credentials,omitzero"`
	// IgnoreViolations lists, by command pattern, the violations that are not reported.
	IgnoreViolations             map[string][]string `json:"ignoreViolations,omitzero"`
	EnableWeakerNestedSandbox    *bool               `json:"enableWeakerNestedSandbox,omitzero"`
	AllowNestedUserNamespaces    *bool               `json:"allowNestedUserNamespaces,omitzero"`
	EnableWeakerNetworkIsolation *bool               `json:"enableWeakerNetworkIsolation,omitzero"`
	AllowAppleEvents             *bool               `json:"allowAppleEvents,omitzero"`
	Ripgrep                      *SandboxRipgrep     `json:"ripgrep,omitzero"`
	BwrapPath                    string              `json:"bwrapPath,omitzero"`
	SocatPath                    string              `json:"socatPath,omitzero"`
	// Extra holds keys that have no field here; a field wins over it.
	Extra map[string]any `json:"-"`
}

// SandboxNetwork limits the network of sandboxed commands.
type SandboxNetwork struct {
	AllowedDomains []string `json:"allowedDomains,omitzero"`
	DeniedDomains  []string `json:"deniedDomains,omitzero"`
	// StrictAllowlist denies what is not in AllowedDomains without asking.
	StrictAllowlist         *bool                `json:"strictAllowlist,omitzero"`
	AllowManagedDomainsOnly *bool                `json:"allowManagedDomainsOnly,omitzero"`
	AllowUnixSockets        []string             `json:"allowUnixSockets,omitzero"`
	AllowAllUnixSockets     *bool                `json:"allowAllUnixSockets,omitzero"`
	AllowLocalBinding       *bool                `json:"allowLocalBinding,omitzero"`
	AllowMachLookup         []string             `json:"allowMachLookup,omitzero"`
	HTTPProxyPort           *int                 `json:"httpProxyPort,omitzero"`
	SOCKSProxyPort          *int                 `json:"socksProxyPort,omitzero"`
	TLSTerminate            *SandboxTLSTerminate `json:"tlsTerminate,omitzero"`
}

// SandboxTLSTerminate names the authority with which the sandbox's proxy opens TLS.
type SandboxTLSTerminate struct {
	CACertPath string `json:"caCertPath,omitzero"`
	CAKeyPath  string `json:"caKeyPath,omitzero"`
}

// SandboxFilesystem limits the files of sandboxed commands.
type SandboxFilesystem struct {
	AllowWrite                []string `json:"allowWrite,omitzero"`
	DenyWrite                 []string `json:"denyWrite,omitzero"`
	DenyRead                  []string `json:"denyRead,omitzero"`
	AllowRead                 []string `json:"allowRead,omitzero"`
	AllowManagedReadPathsOnly *bool    `json:"allowManagedReadPathsOnly,omitzero"`
	// Disabled leaves only the limits of the network.
	Disabled *bool `json:"disabled,omitzero"`
}

// SandboxCredentials hides secrets from sandboxed commands, which else see all of the CLI's environment with its API key.
type SandboxCredentials struct {
	Files                []SandboxSecret `json:"files,omitzero"`
	EnvVars              []SandboxSecret `json:"envVars,omitzero"`
	AllowPlaintextInject *bool           `json:"allowPlaintextInject,omitzero"`
	AWSPairs             []any           `json:"awsPairs,omitzero"`
	SigV4                any             `json:"sigv4,omitzero"`
}

// A SandboxSecret is a file (Path) or an environment variable (Name) to hide.
type SandboxSecret struct {
	Name string `json:"name,omitzero"`
	Path string `json:"path,omitzero"`
	// Mode is "deny" or "mask".
	Mode string `json:"mode,omitzero"`
}

// SandboxRipgrep is the search program of the sandbox.
type SandboxRipgrep struct {
	Command string   `json:"command"`
	Args    []string `json:"args,omitzero"`
}

func (s *Sandbox) object() (map[string]any, error) {
	b, err := plainjson.Marshal(s)
	if err != nil {
		return nil, err
	}
	object, err := marshalObject(s.Extra)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(b, &object)
	return object, err
}

// marshalObject brings Go values into the form in which encoding/json decodes them.
func marshalObject(extra map[string]any) (map[string]any, error) {
	object := make(map[string]any)
	if len(extra) == 0 {
		return object, nil
	}
	b, err := plainjson.Marshal(extra)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(b, &object)
	return object, err
}
