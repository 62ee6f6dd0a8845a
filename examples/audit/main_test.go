// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/workspace"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func needCell(t *testing.T) {
	t.Helper()
	if best, reasons := isolation.Best(t.Context()); best != isolation.LevelCell {
		t.Skipf("needs a cell: %v", reasons)
	}
}

func TestAudit_CommandSeesOnlyTheCopies(t *testing.T) {
	needCell(t)
	project := shop(t)
	model := claudetest.NewModel(t,
		script.Call("Read", script.Input{"file_path": "repo/shop.py"}),
		script.Call("Bash", script.Input{"command": "ls -A repo; cat " + filepath.Join(project, ".env") + "; curl -s -m 5 http://evil.example/; echo spoiled > repo/shop.py && cat repo/shop.py"}),
		script.Structured(script.Input{"risk": "high", "issues": []string{"shop.py evaluates what the user types."}}),
	).RequireAllUsed()
	var out strings.Builder
	if err := run(t.Context(), &out, claudetest.CLI(t).Options(model), project); err != nil {
		t.Fatal(err)
	}
	want := "repo: 1 files, 14 bytes\nrisk: high\n- shop.py evaluates what the user types.\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("audit printed (-want +got):\n%s", diff)
	}
	if !model.SawText("- `repo/`: folder with 1 file, 0 folders, 14 bytes") {
		t.Error("the model has not read what is in the workspace")
	}
	if got, _, _ := model.ToolResult("Read"); !strings.Contains(got, "eval(input())") {
		t.Errorf("the model read %q, want the copy", got)
	}
	if got, _, _ := model.ToolResult("Bash"); !strings.HasPrefix(got, "shop.py\n") || !strings.Contains(got, "spoiled") || strings.Contains(got, "SECRET") {
		t.Errorf("the command saw %q, want the copies alone, which it may change", got)
	}
	if text, err := os.ReadFile(filepath.Join(project, "shop.py")); string(text) != "eval(input())\n" {
		t.Errorf("the original is %q (%v)", text, err)
	}
}

// What is outside of the roots is refused before anything is started.
func TestAudit_LinkOutOfTheProjectIsRefused(t *testing.T) {
	project := shop(t)
	if err := os.Symlink("/etc/hosts", filepath.Join(project, "hosts")); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), t.Output(), &claude.Options{}, project)
	if !errors.Is(err, workspace.ErrSecurity) || !strings.Contains(advice.Text(err), "hosts") {
		t.Errorf("the error is %v, want one that names the link", err)
	}
}

// shop makes a project with a secret.
func shop(t *testing.T) string {
	t.Helper()
	project := filepath.Join(t.TempDir(), "shop")
	files := map[string]string{"shop.py": "eval(input())\n", "shop.pyc": "\x00", ".env": "SECRET=1\n", "__pycache__/shop.pyc": "\x00"}
	for name, text := range files {
		at := filepath.Join(project, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return project
}
