// SPDX-License-Identifier: Apache-2.0

package isolation

// A Mode is a way to pay for the model.
type Mode string

// The modes, in the order in which they are looked for. Vertex and Foundry are refused by name.
const (
	ModeExplicitKey Mode = "explicit_api_key" // Isolation.APIKey
	ModeBedrock     Mode = "bedrock"          // CLAUDE_CODE_USE_BEDROCK=1 and a region
	ModeAPIKey      Mode = "anthropic_api"    // ANTHROPIC_API_KEY
	ModeAuthToken   Mode = "auth_token"       // ANTHROPIC_AUTH_TOKEN
	ModeOAuthToken  Mode = "oauth_token"      // CLAUDE_CODE_OAUTH_TOKEN
	ModeKeyHelper   Mode = "api_key_helper"   // apiKeyHelper of the host's settings
	ModeStoredLogin Mode = "stored_login"     // a login of the host's claude, only when asked for
)

// Auth is how the model is paid for. The zero value takes the first that the host has: its variables,
// then the settings of its claude.
type Auth struct {
	// Only is the one mode to accept. Empty means the first that the host has.
	Only Mode
	// UseStoredLogin lets the run use the login that the host's claude keeps in a file. It is the last
	// that is looked for. Without it the file is never opened.
	UseStoredLogin bool
	// LoginPath is that file. Empty means .credentials.json in the host's Claude folder.
	LoginPath string
}

// A Source is where something was found.
type Source string

// The sources.
const (
	SourceGiven        Source = "given"         // a field of Isolation
	SourceShell        Source = "shell"         // a variable of this process
	SourceHostSettings Source = "host_settings" // settings.json of the host's claude
	SourceStoredLogin  Source = "stored_login"  // the login file of the host's claude
)

// A Finding is how a run would pay for the model. It prints without its secret.
type Finding struct {
	Mode   Mode
	Source Source
	// Name is the variable or the setting that decided.
	Name string
	// BaseURL is where calls go. Empty means the default of the mode.
	BaseURL string
	// Bedrock is set in ModeBedrock.
	Bedrock *BedrockConfig
	// Notes are what else was seen on the way: a settings file that is not JSON, a credential that
	// stands behind this one.
	Notes []string

	// Pointers, since package fmt prints fields that it cannot ask for their methods.
	credential *credential
	from       *search
}

// BedrockConfig is what is known of Bedrock. Credentials are found by AWS's own rules, outside of the
// cell.
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

// An AuthError says that there is no way to pay for the model, or none that can be used.
type AuthError struct {
	// Reason is what is missing.
	Reason string
	// Fixes are the ways to mend it; one is enough.
	Fixes []string
	// Err is the cause, if there is one. Reason and Fixes say what it says.
	Err error
}

// Unwrap returns the cause.
func (e *AuthError) Unwrap() error { return e.Err }

func (e *AuthError) Error() string {
	text := "isolation: " + e.Reason
	for _, fix := range e.Fixes {
		text += "\n  next: " + fix
	}
	return text
}
