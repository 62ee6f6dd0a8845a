// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func TestAgent_CannotWrite(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("Write", script.Input{"file_path": cli.Work + "/new.txt", "content": "x"}),
		script.Text("I may not write."),
	).RequireAllUsed()
	answer, err := drover.Ask[string](t.Context(), claudecode.New(cli.Options(model)), "Write a file.", nil)
	if err != nil || answer.Output != "I may not write." {
		t.Fatalf("%+v, %v", answer, err)
	}
	if _, isError, _ := model.ToolResult("Write"); !isError {
		t.Error("a question has written a file")
	}
}
