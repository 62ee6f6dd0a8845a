// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func TestHello_PrintsTheAnswer(t *testing.T) {
	model := claudetest.NewModel(t,
		script.Structured(script.Input{"greeting": ""}), // which the schema does not allow
		script.Structured(script.Input{"greeting": "Hello, world"}),
	).RequireAllUsed()
	var out strings.Builder
	if err := run(t.Context(), &out, claudetest.CLI(t).Options(model)); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "Hello, world\n"; got != want {
		t.Errorf("hello printed %q, want %q", got, want)
	}
	if !model.SawText("## 1. Task (task)\n\nSay hello.") {
		t.Error("the model has not read the prompt")
	}
}
