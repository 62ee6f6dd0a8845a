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

func TestTalk_AsideAndInterruptLeaveTheConversation(t *testing.T) {
	keys := make(chan os.Signal)
	model := claudetest.NewModel(t,
		script.Text("Hello."),
		script.Text("It sells carts."),
		script.Text("Between us: badly."),
		script.Func(func(*script.Request) script.Turn { keys <- os.Interrupt; return script.Hang() }),
		script.Text("You are welcome."),
	).RequireAllUsed()
	input := strings.NewReader("What is it for?\naside: Is it written well?\nThink about it for a year.\nThank you.\n")
	var out strings.Builder
	if err := run(t.Context(), input, &out, claudetest.CLI(t).Options(model), keys); err != nil {
		t.Fatal(err)
	}
	want := "Hello.\nIt sells carts.\nBetween us: badly.\n(interrupted)\nYou are welcome.\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("talk printed (-want +got):\n%s", diff)
	}
	last := model.LastRequest()
	if !last.SawText("What is it for?") || last.SawText("Is it written well?") {
		t.Error("the conversation has forgotten a message, or remembers the aside")
	}
}
