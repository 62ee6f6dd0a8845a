// SPDX-License-Identifier: Apache-2.0

package claudecell

import "github.com/drover-agents/drover/isolation"

// The modes, in the order in which they are looked for. Vertex and Foundry are refused by name.
const (
	ModeExplicitKey isolation.Mode = "explicit_api_key" // Isolation.APIKey
	ModeBedrock     isolation.Mode = "bedrock"          // CLAUDE_CODE_USE_BEDROCK=1 and a region
	ModeAPIKey      isolation.Mode = "anthropic_api"    // ANTHROPIC_API_KEY
	ModeAuthToken   isolation.Mode = "auth_token"       // ANTHROPIC_AUTH_TOKEN
	ModeOAuthToken  isolation.Mode = "oauth_token"      // CLAUDE_CODE_OAUTH_TOKEN
	ModeKeyHelper   isolation.Mode = "api_key_helper"   // apiKeyHelper of the host's settings
	ModeStoredLogin isolation.Mode = "stored_login"     // a login of the host's claude, only when asked for
)

// A Source is where something was found.
type Source string

// The sources.
const (
	SourceGiven        Source = "given"         // a field of isolation.Isolation
	SourceShell        Source = "shell"         // a variable of this process
	SourceHostSettings Source = "host_settings" // settings.json of the host's claude
	SourceStoredLogin  Source = "stored_login"  // the login file of the host's claude
)

// A Finding is how a run would pay for the model. It prints without its secret.
type Finding struct {
	Mode   isolation.Mode
	Source Source
	// Name is the variable or the setting that decided.
	Name string
	// BaseURL is where calls go. Empty means the default of the mode.
	BaseURL string
	// Bedrock is set in ModeBedrock.
	Bedrock *BedrockConfig
	// Notes are what else was seen on the way: a settings file that is not JSON, a credential that is behind this one.
	Notes []string

	// Pointers, since package fmt prints fields that it cannot ask for their methods.
	credential *credential
	from       *search
}

// BedrockConfig is what is known of Bedrock. Credentials are found by AWS's own rules, outside of the cell.
type BedrockConfig struct {
	Region  string
	Profile string
	// Source is where the switch was found.
	Source Source
}

// credential is a secret, or a command that prints one.
type credential struct {
	secret  string
	command string
}
