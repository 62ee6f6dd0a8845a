// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

// The second line is written when the model has got the first one.
func TestDictate_SendsOneLineAfterTheOther(t *testing.T) {
	in, typed := io.Pipe()
	write := func(line string) { _, _ = io.WriteString(typed, line) }
	go write("What is a cart?\n")
	model := claudetest.NewModel(t,
		script.Func(func(*script.Request) script.Turn {
			go func() { write("And a horse?\n"); _ = typed.Close() }()
			return script.Text("It has wheels.")
		}),
		script.Text("It has legs."),
	).RequireAllUsed()
	var out strings.Builder
	if err := run(t.Context(), in, &out, claudetest.CLI(t).Options(model)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("It has wheels.\nIt has legs.\n", out.String()); diff != "" {
		t.Errorf("dictate printed (-want +got):\n%s", diff)
	}
	if last := model.LastRequest(); !last.SawText("What is a cart?") || !last.SawText("And a horse?") {
		t.Error("the two lines are not one conversation")
	}
}
