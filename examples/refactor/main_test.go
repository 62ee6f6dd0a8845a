// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/workspace"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

// What the agent does, and what is printed of it in each case.
const (
	edits   = "sed -i s/x/total/ project/src/cart.py; echo 'total = 0' > project/src/price.py"
	changes = "Names that say what they are.\n" +
		"2 files are new or changed, 0 are gone\n" +
		"project/src/cart.py: 16 bytes (v2)\n" +
		"project/src/price.py: 10 bytes (v1)\n" +
		"project/tests/test_cart.py: 12 bytes (v1)\n" +
		"--- project/src/cart.py\ntotal = sum([])\n" +
		"--- project/src/price.py\ntotal = 0\n"
)

func TestRefactor_WritesBackUnlessTheHostChanged(t *testing.T) {
	if best, reasons := isolation.Best(t.Context()); best != isolation.LevelCell {
		t.Skipf("needs a cell: %v", reasons)
	}
	cli := claudetest.CLI(t)
	for _, c := range []struct {
		name     string
		dryRun   bool
		host     string // changes the project while the agent works
		printed  string
		cart     string // on the host, in the end
		newThere bool
	}{
		{
			"a dry run", true, "",
			"Nothing was written. These would be:\nwritten: project/src/cart.py\nwritten: project/src/price.py\n", "x = sum([])\n", false,
		},
		{"applied", false, "", "written: project/src/cart.py\nwritten: project/src/price.py\n", "total = sum([])\n", true},
		{
			"the host has changed", false, "y = sum([])\n",
			"conflict: project/src/cart.py was changed in the workspace, and on the host\n" +
				"Nothing was written. This is what the agent did:\n" +
				"changed file: project/src/cart.py\n--- a/project/src/cart.py\n+++ b/project/src/cart.py\n@@ -1 +1 @@\n-x = sum([])\n+total = sum([])\n" +
				"created file: project/src/price.py\n--- /dev/null\n+++ b/project/src/price.py\n@@ -0,0 +1 @@\n+total = 0\n", "y = sum([])\n", false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			project := shop(t)
			cart := filepath.Join(project, "src/cart.py")
			model := claudetest.NewModel(t,
				script.Turn{Func: func(*script.Request) script.Turn {
					if c.host != "" {
						write(t, cart, c.host)
					}
					return script.Call("Bash", script.Input{"command": edits})
				}},
				script.Structured(script.Input{"summary": "Names that say what they are."}),
			).RequireAllUsed()
			var out strings.Builder
			back := &workspace.WriteBackOptions{DryRun: c.dryRun, State: filepath.Join(t.TempDir(), "state")}
			if err := run(t.Context(), &out, cli.Options(model), project, back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(changes+c.printed, out.String()); diff != "" {
				t.Errorf("refactor printed (-want +got):\n%s", diff)
			}
			if text, err := os.ReadFile(cart); string(text) != c.cart {
				t.Errorf("the host has %q (%v), want %q", text, err, c.cart)
			}
			if _, err := os.Stat(filepath.Join(project, "src/price.py")); (err == nil) != c.newThere {
				t.Errorf("the new file is on the host: %v, want %v", err == nil, c.newThere)
			}
		})
	}
}

// shop makes a project.
func shop(t *testing.T) string {
	t.Helper()
	project := t.TempDir()
	write(t, filepath.Join(project, "src/cart.py"), "x = sum([])\n")
	write(t, filepath.Join(project, "src/notes.txt"), "private\n")
	write(t, filepath.Join(project, "tests/test_cart.py"), "assert True\n")
	write(t, filepath.Join(project, "tests/helper.py"), "\n")
	return project
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
