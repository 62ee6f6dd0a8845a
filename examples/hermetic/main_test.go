// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

const key = "sk-ant-given-to-the-program"

func TestHermetic_HidesHomeKeyAndNetwork(t *testing.T) {
	if best, reasons := isolation.Best(t.Context()); best != isolation.LevelCell {
		t.Skipf("needs a cell: %v", reasons)
	}
	for name, c := range map[string]struct {
		network *isolation.NetworkPolicy
		held    string
	}{
		"no network":    {isolation.NoNetwork(), "- network: tools reach nothing\n"},
		"the API alone": {claudecell.APIOnly(), "- network: tools reach api.anthropic.com through the proxy\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			secret := filepath.Join(cli.Config, "secret")
			if err := os.WriteFile(secret, []byte("of the host"), 0o600); err != nil {
				t.Fatal(err)
			}
			inTwo := key[:8] + "''" + key[8:] // the gateway would mask the key in an answer of the model
			model := claudetest.NewModel(t,
				script.Call("Bash", script.Input{"command": "cat " + secret + "; env | grep -c " + inTwo + "; curl -sS -m 5 http://evil.example/; cd; pwd"}),
				script.Text("It sells carts."),
			).RequireAllUsed()
			var out strings.Builder
			if err := run(t.Context(), &out, cli.Options(model), key, c.network); err != nil {
				t.Fatal(err)
			}
			if got, want := out.String(), "It sells carts.\n"; !strings.HasSuffix(got, want) || !strings.Contains(got, c.held) {
				t.Errorf("hermetic printed %q, want %q and at the end %q", got, c.held, want)
			}
			if got := model.LastRequest().Header.Get("X-Api-Key"); got != key {
				t.Errorf("the model was paid for with %q, want %q", got, key)
			}
			saw, _, _ := model.ToolResult("Bash")
			for _, want := range []string{secret + ": No such file", "\n0\n", "evil.example:80 is denied", "/drover-home-"} {
				if !strings.Contains(saw, want) {
					t.Errorf("the command saw %q, want %q in it", saw, want)
				}
			}
		})
	}
}
