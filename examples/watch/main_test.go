// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func TestWatch_PrintsTheEventsOfARun(t *testing.T) {
	if best, reasons := isolation.Best(t.Context()); best != isolation.LevelCell {
		t.Skipf("needs a cell: %v", reasons)
	}
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "ls", "description": "what is there"}).Metered(script.Usage{Input: 1000, Output: 100}),
		script.Text("There is nothing.").Metered(script.Usage{Input: 1000, Output: 50}),
	).RequireAllUsed()
	var out strings.Builder
	if err := run(t.Context(), &out, claudetest.CLI(t).Options(model)); err != nil {
		t.Fatal(err)
	}
	want := "isolation: cell\nBash what is there\nBash: success\nThere is nothing.\n2 model calls, 1 tool calls, 2150 tokens\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("watch printed (-want +got):\n%s", diff)
	}
}
