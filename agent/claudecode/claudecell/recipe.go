// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"errors"

	"github.com/drover-agents/drover/isolation"
)

// InheritHostAuth is base with the authentication of the host. It fails with an [*isolation.AuthError] if the host has none.
func InheritHostAuth(base isolation.Isolation) (*isolation.Isolation, error) {
	base.APIKey, base.Auth.Only = "", ""
	return checked(base, authProblem(&base))
}

// WithAPIKey is base with this key, whatever the host has. It fails with an [*isolation.AuthError] if the key is invalid.
func WithAPIKey(key string, base isolation.Isolation) (*isolation.Isolation, error) {
	if reason := badSecret(key); reason != "" {
		return nil, &isolation.AuthError{Reason: "the API key " + reason, Fixes: []string{"give a key, or use claudecell.InheritHostAuth to take what the host has"}}
	}
	base.APIKey, base.Auth.Only = key, ""
	return checked(base, nil) // nothing of the host matters
}

// ForAnthropicAPI is base with the key in ANTHROPIC_API_KEY, never Bedrock; an [*isolation.AuthError] if that is not set.
func ForAnthropicAPI(base isolation.Isolation) (*isolation.Isolation, error) {
	base.APIKey, base.Auth.Only = "", ModeAPIKey
	return checked(base, authProblem(&base))
}

// ForBedrock is base with Bedrock, which CLAUDE_CODE_USE_BEDROCK and a region must ask for. The folder is where AWS keeps
// its files; empty means ~/.aws. It fails with an [*isolation.AuthError] if Bedrock is not configured.
func ForBedrock(awsConfigPath string, base isolation.Isolation) (*isolation.Isolation, error) {
	base.APIKey, base.Auth.Only, base.AWSConfigPath = "", ModeBedrock, awsConfigPath
	return checked(base, authProblem(&base))
}

func authProblem(i *isolation.Isolation) error {
	_, err := Authenticate(i)
	return err
}

// checked fails fast. A protection that cannot be enforced is found when the run starts, since it depends on the
// isolation level that is available.
func checked(i isolation.Isolation, problem error) (*isolation.Isolation, error) {
	if err := errors.Join(problem, ValidateEnv(i.Env)); err != nil {
		return nil, err
	}
	return &i, nil
}

// Production is for agents that work on their own account: a cell, tools that reach Anthropic's API and
// nothing else, nothing of the host's environment, and a key that comes from where you keep secrets.
func Production(key string) (*isolation.Isolation, error) {
	return WithAPIKey(key, isolation.Isolation{Network: APIOnly(), Sandbox: &isolation.Sandbox{}})
}

// APIOnly lets tools reach Anthropic's API. The agent's own way to the model is not subject to the policy.
func APIOnly() *isolation.NetworkPolicy { return isolation.WithDomains("api.anthropic.com") }
