// SPDX-License-Identifier: Apache-2.0

package claudetest_test

import (
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// A test gives the model its lines, runs an agent against it, and asks what the model saw.
func ExampleNewModel() {
	test := func(t *testing.T) {
		model := claudetest.NewModel(t,
			script.Call("Bash", script.Input{"command": "cat VERSION"}),
			script.Text("This is version 7."),
		).RequireAllUsed()

		runAgent(t, model.Env(), "Which version is this?") // your own code

		if text, _, _ := model.ToolResult("Bash"); text != "7" {
			t.Errorf("the model saw %q of the file, want 7", text)
		}
	}
	_ = test
}

func runAgent(*testing.T, map[string]string, string) {}
