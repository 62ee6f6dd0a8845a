// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

func TestValidateEnv_RefusesVariablesThatIsolationDependsOn(t *testing.T) {
	for name, instead := range map[string]string{
		"CLAUDE_CONFIG_DIR":             "Isolation.Populate",
		"CLAUDE_CODE_TMPDIR":            "Isolation.TempDir",
		"ANTHROPIC_API_KEY":             "Isolation.APIKey",
		"ANTHROPIC_BASE_URL":            "Isolation.Upstream",
		"ANTHROPIC_AUTH_TOKEN":          "Isolation.Auth",
		"ANTHROPIC_UNIX_SOCKET":         "Isolation.Upstream",
		"CLAUDE_CODE_OAUTH_TOKEN":       "Isolation.Auth",
		"CLAUDE_CODE_USE_BEDROCK":       "Isolation.Auth",
		"CLAUDE_CODE_USE_VERTEX":        "Isolation.Auth",
		"CLAUDE_CODE_SKIP_BEDROCK_AUTH": "Isolation.Auth",
		"IS_SANDBOX":                    "Isolation.Sandbox",
		"HOME":                          "Isolation.Populate", // as for every program
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{name: "x"}
			_, opened := claudecell.Open(t.Context(), &isolation.Isolation{Env: env}, &claude.Options{Dir: t.TempDir()}, isolation.OpenOptions{})
			_, executed := (&isolation.Isolation{}).Exec(t.Context(), isolation.ExecOptions{Argv: []string{"true"}, Env: env, Program: claudecell.Program(&claude.Options{Dir: t.TempDir()})})
			for _, err := range []error{claudecell.ValidateEnv(env), opened, executed} {
				refused, ok := errors.AsType[*isolation.RefusedError](err)
				if !ok || refused.Field != fmt.Sprintf("Env[%q]", name) || !strings.Contains(advice.Text(err), instead) {
					t.Errorf("got %v, want a RefusedError that says %s", err, instead)
				}
			}
		})
	}
	if err := claudecell.ValidateEnv(map[string]string{"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "9", "ENABLE_TOOL_SEARCH": "false", "MY_KEY": "given by name"}); err != nil {
		t.Errorf("got %v, want these accepted", err)
	}
}
