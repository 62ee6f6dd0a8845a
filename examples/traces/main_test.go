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

func TestTraces_WritesSpansAndMetricsToAFile(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "ls", "description": "look"}),
		script.Text("It sells carts."),
	).RequireAllUsed()
	file := filepath.Join(t.TempDir(), "run.jsonl")
	var out strings.Builder
	if err := run(t.Context(), &out, cli.Options(model), file); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "It sells carts.\n"; got != want {
		t.Errorf("traces printed %q, want %q", got, want)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"Name":"invoke_agent traces:purpose"`, `"Name":"chat claude-opus-5-5"`, `"Name":"execute_tool Bash"`, `"Value":"anthropic"`, `"gen_ai.client.token.usage"`, `"traces"`} {
		if !strings.Contains(string(written), want) {
			t.Errorf("the file has no %s", want)
		}
	}
	if strings.Contains(string(written), "sells carts") {
		t.Error("the file has content")
	}
}
