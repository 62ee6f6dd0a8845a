// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// credentialVariables hold secrets of the CLI. The run's own token is in one of them.
var credentialVariables = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS",
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"ANTHROPIC_BEDROCK_BASE_URL", // the token is in its path
}

// refused are the variables of the CLI that a cell decides about.
var refused = []isolation.RefusedVariable{
	{Name: "CLAUDE_CONFIG_DIR", Instead: "the configuration is in the private home; put files into it with Isolation.Populate"},
	{Name: "CLAUDE_CODE_TMPDIR", Instead: "temporary files are private to each run; Isolation.TempDir says where homes are made"},
	{Name: "ANTHROPIC_API_KEY", Instead: "use Isolation.APIKey: the key stays outside of the cell"},
	{Name: "ANTHROPIC_MODEL", Instead: "use the model option of the agent"},
	{Name: "ANTHROPIC_BASE_URL", Instead: "use Isolation.Upstream, or set it in the environment of the host: model calls go through the gateway"},
	{Name: "ANTHROPIC_*", Instead: "use Isolation.Auth or Isolation.Upstream: model calls go through the gateway, and credentials stay outside"},
	{Name: "CLAUDE_CODE_OAUTH_TOKEN", Instead: "use Isolation.Auth with the host's environment: the token stays outside of the cell"},
	{Name: "CLAUDE_CODE_USE_*", Instead: "use Isolation.Auth: it decides how the model is paid for"},
	{Name: "CLAUDE_USE_*", Instead: "use Isolation.Auth: it decides how the model is paid for"},
	{Name: "CLAUDE_CODE_SKIP_*", Instead: "use Isolation.Auth: it decides how the model is paid for"},
	{Name: "CLAUDE_CODE_API_*", Instead: "use Isolation.Auth: it decides how the model is paid for"},
	{Name: "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", Instead: "the gateway needs it to end a run in mid-turn; use guard.Budget for budgets"},
	{Name: "CLAUDE_CODE_DISABLE_AUTO_MEMORY", Instead: "what an agent remembers of other runs is off in every cell"},
	{Name: "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", Instead: "a cell has no way for it"},
	{Name: "DISABLE_AUTOUPDATER", Instead: "the CLI cannot be changed from within"},
	{Name: "CLAUDE_CODE_BUBBLEWRAP", Instead: "use Isolation.Sandbox: a variable does not turn isolation on"},
	{Name: "IS_SANDBOX", Instead: "use Isolation.Sandbox: a variable does not turn isolation on"},
	{Name: "CLAUDECODE", Instead: "the agent is not nested in another one; leave it out"},
}

// replaced are variables that [claude.CellEnv] has values of its own for, some of them made of the caller's.
var replaced = []string{
	claude.EnvConfigDir, "CLAUDE_CODE_TMPDIR", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY",
	"ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL", "IS_SANDBOX",
	"DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
}

// choosesModel reports whether a variable only selects a model.
func choosesModel(name string) bool {
	return name == "ANTHROPIC_BETAS" || strings.HasPrefix(name, "ANTHROPIC_") && strings.HasSuffix(name, "_MODEL")
}

// ValidateEnv refuses variables that the isolation of the CLI depends on, as [isolation.Isolation.Open] does.
func ValidateEnv(env map[string]string) error {
	return isolation.Program{Refused: refused}.ValidateEnv(env)
}
