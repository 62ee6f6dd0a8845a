// SPDX-License-Identifier: Apache-2.0

package isolation

import "errors"

// InheritHostAuth is base with the authentication of the host. It fails with an [*AuthError] if the host
// has none.
func InheritHostAuth(base Isolation) (*Isolation, error) {
	base.APIKey, base.Auth.Only = "", ""
	return checked(base, base.authProblem())
}

// WithAPIKey is base with this key, whatever the host has. It fails with an [*AuthError] if the key is
// none.
func WithAPIKey(key string, base Isolation) (*Isolation, error) {
	if reason := badSecret(key); reason != "" {
		return nil, &AuthError{Reason: "the API key " + reason, Fixes: []string{"give a key, or use isolation.InheritHostAuth to take what the host has"}}
	}
	base.APIKey, base.Auth.Only = key, ""
	return checked(base, nil) // nothing of the host matters
}

// ForAnthropicAPI is base with the key in ANTHROPIC_API_KEY, and never Bedrock. It fails with an
// [*AuthError] if that is not set.
func ForAnthropicAPI(base Isolation) (*Isolation, error) {
	base.APIKey, base.Auth.Only = "", ModeAPIKey
	return checked(base, base.authProblem())
}

// ForBedrock is base with Bedrock, which CLAUDE_CODE_USE_BEDROCK and a region must ask for. The folder
// is where AWS keeps its files; empty means ~/.aws. It fails with an [*AuthError] if Bedrock is not
// configured.
func ForBedrock(awsConfigPath string, base Isolation) (*Isolation, error) {
	base.APIKey, base.Auth.Only, base.AWSConfigPath = "", ModeBedrock, awsConfigPath
	return checked(base, base.authProblem())
}

func (i *Isolation) authProblem() error {
	_, err := i.Authenticate()
	return err
}

// checked fails fast. What cannot be enforced here is found when the run starts, since it depends on the
// walls that can be had.
func checked(i Isolation, problem error) (*Isolation, error) {
	if err := errors.Join(problem, validateEnv(i.Env)); err != nil {
		return nil, err
	}
	return &i, nil
}

// Production is for agents that work on their own account: a cell, tools that reach Anthropic's API and
// nothing else, nothing of the host's environment, and a key that comes from where you keep secrets.
func Production(key string) (*Isolation, error) {
	return WithAPIKey(key, Isolation{Network: APIOnly(), Sandbox: &Sandbox{}})
}

// Development has NO WALLS: tools reach every host and every file of the user, and see the host's
// variables but for sensitive ones. Home and credentials stay private. It is for trying things out on a
// machine that has nothing to lose.
func Development() *Isolation {
	return &Isolation{
		Network:        &NetworkPolicy{AllowedDomains: []string{"*"}, AllowLocalhost: true, AllowLocalBinding: true},
		Sandbox:        &Sandbox{Disabled: true},
		IncludeHostEnv: true,
		Weakest:        LevelHost,
	}
}

// Autonomous is for agents that nobody watches, with permission mode bypassPermissions: they ask
// nothing, and there is nothing to ask for, since they have no network and no files but their workspace.
func Autonomous() *Isolation {
	return &Isolation{Network: NoNetwork(), Sandbox: &Sandbox{}, Weakest: LevelCell}
}
