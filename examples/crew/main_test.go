// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func TestCrew_EachHasItsOwnPermissions(t *testing.T) {
	cli := claudetest.CLI(t)
	author := cli.Options(claudetest.NewModel(t,
		script.Call("Write", script.Input{"file_path": filepath.Join(cli.Work, "README.md"), "content": "# Shop\n"}),
		script.Call("Bash", script.Input{"command": "touch by-command"}),
		script.Text("Written."),
	))
	critic := cli.Options(claudetest.NewModel(t,
		script.Call("Write", script.Input{"file_path": filepath.Join(cli.Work, "critique.md"), "content": "Bad.\n"}),
		script.Text("All is clear."),
	))
	var out strings.Builder
	if err := run(t.Context(), &out, author, critic); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"author: Write: success\n", "author: Bash: denied\n", "author: success: Written.\n",
		"critic: Write: denied\n", "critic: success: All is clear.\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	for name, want := range map[string]bool{"README.md": true, "by-command": false, "critique.md": false} {
		if _, err := os.Stat(filepath.Join(cli.Work, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
}
