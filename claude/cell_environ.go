// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"maps"
	"net/url"
)

// EnvConfigDir is the variable with the folder of the CLI's settings, skills and transcripts.
const EnvConfigDir = "CLAUDE_CONFIG_DIR"

// A CellEnv is the whole environment of a CLI that is isolated from the machine: a home of its own,
// one endpoint for model calls, no inherited variables. Only this type knows the names of the variables.
type CellEnv struct {
	// Path is where programs are found.
	Path string
	// Home, Config and Temp are the only folders outside of the working directory that the CLI
	// writes to. Config holds settings, skills and transcripts.
	Home, Config, Temp string
	// Endpoint is where model calls go.
	Endpoint CellEndpoint
	// Extra are further variables. They do not replace those above.
	Extra map[string]string
}

// A CellEndpoint is the gateway as the CLI sees it.
type CellEndpoint struct {
	// URL is its address. Token is valid for this gateway only.
	URL, Token string
	// BedrockRegion makes the CLI use the API of Bedrock in this region; the gateway signs. Empty means the Messages API.
	BedrockRegion string
}

// Vars are the variables, for [ExactEnv].
func (c CellEnv) Vars() map[string]string {
	vars := maps.Clone(c.Extra)
	if vars == nil {
		vars = map[string]string{}
	}
	maps.Copy(vars, map[string]string{
		"PATH": c.Path, "HOME": c.Home, EnvConfigDir: c.Config,
		"TMPDIR": c.Temp, "CLAUDE_CODE_TMPDIR": c.Temp,
		"DISABLE_AUTOUPDATER":                       "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC":  "1",
		"CLAUDE_CODE_DISABLE_AUTO_MEMORY":           "1",
		"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1", // so that an error in the stream ends the turn
	})
	maps.Copy(vars, c.Endpoint.vars())
	return vars
}

func (e CellEndpoint) vars() map[string]string {
	if e.BedrockRegion == "" {
		return map[string]string{
			"ANTHROPIC_BASE_URL": e.URL, "ANTHROPIC_API_KEY": e.Token,
			"CLAUDE_CODE_USE_BEDROCK": "0",
		}
	}
	return map[string]string{
		"CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
		"ANTHROPIC_BEDROCK_BASE_URL": e.bedrockURL(), "AWS_REGION": e.BedrockRegion,
	}
}

// bedrockURL carries the token in the path, since the CLI sends no credential of its own.
func (e CellEndpoint) bedrockURL() string { return e.URL + "/" + url.PathEscape(e.Token) }
