// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// The program takes the CLI and its environment from the process, as a user's would.
func TestQuery_PrintsTheAnswer(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("It sells carts."))
	for name, value := range cli.Env(model.BaseURL()) {
		t.Setenv(name, value)
	}
	t.Setenv("DROVER_CLAUDE", cli.Path)
	t.Chdir(cli.Work)
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(out.String()), "It sells carts."; got != want {
		t.Errorf("query printed %q, want %q", got, want)
	}
}
