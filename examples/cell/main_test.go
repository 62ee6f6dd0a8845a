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
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func needCell(t *testing.T) {
	t.Helper()
	if best, reasons := isolation.Best(t.Context()); best != isolation.LevelCell {
		t.Skipf("needs a cell: %v", reasons)
	}
}

// printed runs the program and returns what it prints.
func printed(t *testing.T, cli *claudetest.RealCLI, model *claudetest.Model, do task) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), &out, cli.Options(model), do); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestCell_HidesTheHostAndIsReplayed(t *testing.T) {
	needCell(t)
	recording := filepath.Join(t.TempDir(), "run.jsonl")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "cat " + secret + "; curl -s -m 5 http://evil.example/; echo made > made.txt"}),
		script.Text("Done."),
	)
	do := task{prompt: "Look around.", domains: []string{"good.example"}, budget: guard.Budget{MaxCostUSD: 1}, record: recording}
	want := "isolation: cell\nevil.example: denied\nsuccess: Done.\n"
	if diff := cmp.Diff(want, printed(t, cli, model, do)); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if got, _, _ := model.ToolResult("Bash"); strings.Contains(got, "of the host") {
		t.Errorf("the command saw %q", got)
	}
	if _, err := os.Stat(filepath.Join(cli.Work, "made.txt")); err != nil {
		t.Errorf("what the agent made in its folder is not there: %v", err)
	}

	silent := claudetest.NewModel(t) // which fails the test if it is asked
	do.record, do.replay = "", recording
	if diff := cmp.Diff(want, printed(t, cli, silent, do)); diff != "" {
		t.Errorf("replayed (-want +got):\n%s", diff)
	}
}

func TestCell_BudgetEndsTheRun(t *testing.T) {
	needCell(t)
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "echo hello"}).Metered(script.Usage{Input: 500, Output: 600}).Always(),
	)
	got := printed(t, cli, model, task{prompt: "Go on.", budget: guard.Budget{MaxTotalTokens: 1000}})
	if want := "isolation: cell\nlimit: MaxTotalTokens\nmax_budget: "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q first", got, want)
	}
}
