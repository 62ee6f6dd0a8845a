// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
)

// Whatever the host pays with feeds the gateway, in the form that it needs, and is not in the cell: with the
// real CLI, which looks for it.
func TestAuth_CredentialsStayOutsideTheCell(t *testing.T) {
	const secret = "planted-secret-0123456789"
	bearer := http.Header{"Authorization": {"Bearer " + secret}}
	for name, x := range map[string]struct {
		plant func(t *testing.T, home string) (environ []string)
		auth  isolation.Auth
		want  http.Header
		beta  string
	}{
		"a login token": {
			plant: func(*testing.T, string) []string { return []string{"CLAUDE_CODE_OAUTH_TOKEN=" + secret} },
			want:  bearer, beta: "oauth-2025-04-20",
		},
		"a bearer token": {
			plant: func(*testing.T, string) []string { return []string{"ANTHROPIC_AUTH_TOKEN=" + secret} },
			want:  bearer,
		},
		"a key helper": {
			plant: func(t *testing.T, home string) []string {
				plant(t, filepath.Join(home, "vault"), secret+"\n")
				plant(t, filepath.Join(home, ".claude", "settings.json"), `{"apiKeyHelper":"cat `+filepath.Join(home, "vault")+`"}`)
				return nil
			},
			want: http.Header{"X-Api-Key": {secret}, "Authorization": {"Bearer " + secret}},
		},
		"a stored login, by name": {
			plant: func(t *testing.T, home string) []string {
				plant(t, filepath.Join(home, ".claude", ".credentials.json"), `{"claudeAiOauth":{"accessToken":"`+secret+`","expiresAt":99999999999999}}`)
				return nil
			},
			auth: isolation.Auth{UseStoredLogin: true},
			want: bearer, beta: "oauth-2025-04-20",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			home := t.TempDir()
			found := filepath.Join(cli.Work, "found.txt")
			look := "{ env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; cat ~/.claude/settings.json " + home + "/vault " + home + "/.claude/*; grep -rs planted ~ /tmp; } > " + found + " 2>&1; true"
			model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": look}), script.Text("Done.")).RequireAllUsed()
			environ := append(x.plant(t, home), "PATH=/usr/bin:/bin", "ANTHROPIC_BASE_URL="+model.BaseURL())
			runner, err := agent.NewRunner(claudecode.New(&claude.Options{
				CLIPath: cli.Path, Dir: cli.Work, PermissionMode: claude.ModeBypassPermissions, StrictMCP: true,
			}).In(&isolation.Isolation{
				IncludeHostEnv: true, Auth: x.auth,
				Host: isolation.Host{Environ: func() []string { return environ }, Home: home},
			}), nil)
			if err != nil {
				t.Fatal(err)
			}
			var done event.Done
			for e, err := range runner.Run(t.Context(), agent.Request{Prompt: "Look around."}) {
				if err != nil {
					t.Fatal(err)
				}
				if d, ok := e.Payload.(event.Done); ok {
					done = d
				}
			}
			if done.Status != event.DoneSuccess {
				t.Fatalf("the run ended with %+v", done)
			}
			got := model.LastRequest().Header
			for _, header := range []string{"X-Api-Key", "Authorization"} {
				if got.Get(header) != x.want.Get(header) || len(got.Values(header)) > 1 {
					t.Errorf("the model was paid with %s: %q, want %q", header, got.Values(header), x.want.Get(header))
				}
			}
			if x.beta != "" && !strings.Contains(got.Get("Anthropic-Beta"), x.beta) {
				t.Errorf("the betas are %q, want %s among them", got.Get("Anthropic-Beta"), x.beta)
			}
			inside, err := os.ReadFile(found)
			if err != nil || !strings.Contains(string(inside), "ANTHROPIC_BASE_URL=") {
				t.Fatalf("the command did not run: %q (%v)", inside, err)
			}
			for line := range strings.Lines(string(inside)) {
				if strings.Contains(line, secret) || strings.Contains(line, "apiKeyHelper") {
					t.Errorf("the cell contains %q", line)
				}
			}
		})
	}
}
