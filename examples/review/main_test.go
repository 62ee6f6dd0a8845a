// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func TestReview_EditsAreAccepted(t *testing.T) {
	cli := claudetest.CLI(t)
	file := cli.WriteFile(t, "shop.py", "total = price - discount * 2\n")
	model := claudetest.NewModel(t,
		script.Call("Read", script.Input{"file_path": file}),
		script.Call("Edit", script.Input{"file_path": file, "old_string": "discount * 2", "new_string": "discount"}),
		script.Structured(script.Input{"verdict": "fixed", "issues": []string{"The discount was taken twice."}}),
	).RequireAllUsed()
	var out strings.Builder
	if err := run(t.Context(), &out, cli.Options(model), file); err != nil {
		t.Fatal(err)
	}
	want := "fixed: 1 issues\nTool used: Read\nTool used: Edit\nTool used: StructuredOutput\n" // which is how it answers
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("review printed (-want +got):\n%s", diff)
	}
	if !model.SawText("Review the code in " + file) {
		t.Error("the model has not read which file it is about")
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != "total = price - discount\n" {
		t.Errorf("the file is %q (%v); acceptEdits should have let the edit through", now, err)
	}
}
