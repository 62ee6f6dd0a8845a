// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func TestLeash_ShellIsDenied(t *testing.T) {
	cli := claudetest.CLI(t) // the real CLI, in a home of its own
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "touch out"}),
		script.Call("mcp__town__weather", script.Input{"city": "Ulm"}),
		script.Text("It rains."),
	)
	if err := run(t.Context(), t.Output(), cli.Options(model)); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := model.ToolResult("Bash"); !strings.Contains(got, "No shell is available. Continue without this call.") {
		t.Errorf("the model saw %q of Bash, want the refusal", got)
	}
	if got, _, _ := model.ToolResult("mcp__town__weather"); got != "It rains in Ulm." {
		t.Errorf("the model saw %q of the tool", got)
	}
}
