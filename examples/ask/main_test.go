// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

const asProgram = "DROVER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	claudetest.Main(m)
}

// The program takes the CLI, the key and the address of the model from its environment, which has nothing else.
func TestAsk_PrintsTheAnswer(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("It sells carts.")).RequireAllUsed()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Dir = cli.Work
	cmd.Env = []string{asProgram + "=1", "DROVER_CLAUDE=" + cli.Path}
	for name, value := range cli.Env(model.BaseURL()) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if got, want := string(out), "It sells carts.\n"; err != nil || got != want {
		t.Errorf("ask printed %q, want %q: %v", got, want, err)
	}
}
