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

func TestDevelopment_HasNoIsolationAndNoKey(t *testing.T) {
	cli := claudetest.CLI(t)
	note := filepath.Join(t.TempDir(), "note")
	if err := os.WriteFile(note, []byte("beside the project\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "cat " + note + "; echo $EDITOR; env | grep KEY"}),
		script.Text("There is Go."),
	).RequireAllUsed()
	opts := cli.Options(model)
	cli.SetEnv(opts, model, map[string]string{"EDITOR": "ed"})
	var out strings.Builder
	if err := run(t.Context(), &out, opts); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "NO ISOLATION\nThere is Go.\n"; got != want {
		t.Errorf("development printed %q, want %q", got, want)
	}
	got, _, _ := model.ToolResult("Bash")
	if !strings.Contains(got, "beside the project\ned\n") || strings.Contains(got, claudetest.FakeKey) {
		t.Errorf("the command saw %q, want the host's file and variables, and no key", got)
	}
}
