// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// credentialVariables hold secrets of the CLI. The run's own token is in one of them.
var credentialVariables = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS",
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"ANTHROPIC_BEDROCK_BASE_URL", // the token is in its path
}

// wallVariables are variables that Env must not have, and what to use instead. A name that ends in * is
// a prefix. The first match counts. Names are compared in capitals: proxies are spelled both ways.
var wallVariables = []struct{ name, instead string }{
	{"HOME", "the home is private to each run; put files into it with Isolation.Furnish"},
	{"CLAUDE_CONFIG_DIR", "the configuration is in the private home; put files into it with Isolation.Furnish"},
	{"TMPDIR", "temporary files are private to each run; Isolation.TempDir says where homes are made"},
	{"CLAUDE_CODE_TMPDIR", "temporary files are private to each run; Isolation.TempDir says where homes are made"},
	{"ANTHROPIC_API_KEY", "use Isolation.APIKey: the key stays outside of the cell"},
	{"ANTHROPIC_MODEL", "use the model option of the agent"},
	{"ANTHROPIC_BASE_URL", "use Isolation.Upstream, or set it in the environment of the host: model calls go through the gateway"},
	{"ANTHROPIC_*", "use Isolation.Auth or Isolation.Upstream: model calls go through the gateway, and credentials stay outside"},
	{"AWS_*", "use Isolation.Auth with the host's environment, and Isolation.AWSConfigPath: credentials stay outside of the cell"},
	{"CLAUDE_CODE_OAUTH_TOKEN", "use Isolation.Auth with the host's environment: the token stays outside of the cell"},
	{"CLAUDE_CODE_USE_*", "use Isolation.Auth: it decides how the model is paid for"},
	{"CLAUDE_USE_*", "use Isolation.Auth: it decides how the model is paid for"},
	{"CLAUDE_CODE_SKIP_*", "use Isolation.Auth: it decides how the model is paid for"},
	{"CLAUDE_CODE_API_*", "use Isolation.Auth: it decides how the model is paid for"},
	{"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "the gateway needs it to end a run in mid-turn; use guard.Budget for budgets"},
	{"CLAUDE_CODE_DISABLE_AUTO_MEMORY", "what an agent remembers of other runs is off in every cell"},
	{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "a cell has no way for it"},
	{"DISABLE_AUTOUPDATER", "the CLI cannot be changed from within"},
	{"CLAUDE_CODE_BUBBLEWRAP", "use Isolation.Sandbox: walls are not claimed by a variable"},
	{"IS_SANDBOX", "use Isolation.Sandbox: walls are not claimed by a variable"},
	{"CLAUDECODE", "the agent is not nested in another one; leave it out"},
	{"*_PROXY", "use Isolation.Network: tools reach what its AllowedDomains say, through Drover's proxy"},
	{"LD_*", "it loads code into every program of the cell; put a program that needs it behind a script of its own"},
	{"NODE_OPTIONS", "it loads code into the CLI; put a program that needs it behind a script of its own"},
	{"BUN_OPTIONS", "it loads code into the CLI; put a program that needs it behind a script of its own"},
}

// validateEnv refuses variables that hold the walls.
func validateEnv(env map[string]string) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if reason, next := refusedVariable(name, env[name]); reason != "" {
			problems = append(problems, &RefusedError{Field: fmt.Sprintf("Env[%q]", name), Reason: reason, Next: next})
		}
	}
	return errors.Join(problems...)
}

func refusedVariable(name, value string) (reason, next string) {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
		return "it is no variable that a program can have", "use a name without = and a value without zero bytes"
	}
	upper := strings.ToUpper(name)
	for _, wall := range wallVariables {
		if matchesVariable(wall.name, upper) {
			return "it is one of the walls", wall.instead
		}
	}
	return "", ""
}

func matchesVariable(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(name, suffix)
	}
	return name == pattern
}
