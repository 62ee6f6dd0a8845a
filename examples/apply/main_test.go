// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func TestApply_FlagsDecideWhichToolsRun(t *testing.T) {
	for _, c := range []struct {
		name             string
		apply, dangerous bool
		write, remove    string // what the model reads
		left             int    // notes
	}{
		{"nothing may change", false, false, "Use --apply to allow mutating tools.", "Use --apply to allow mutating tools.", 1},
		{"notes may change", true, false, "written", "Use --dangerous to allow this tool.", 2},
		{"all is allowed", true, true, "written", "deleted", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &notes{text: map[string]string{"milk": "two bottles"}}
			model := claudetest.NewModel(t,
				script.Call("mcp__notes__read-note", script.Input{"name": "milk"}),
				script.Call("mcp__notes__write-note", script.Input{"name": "bread", "text": "one"}),
				script.Call("mcp__notes__delete-note", script.Input{"name": "milk"}),
				script.Text("Tidy."),
			)
			opts := claudetest.CLI(t).Options(model)
			opts.PermissionMode = claude.ModeBypassPermissions // the gate holds all the same
			if err := run(t.Context(), t.Output(), opts, store, c.apply, c.dangerous); err != nil {
				t.Fatal(err)
			}
			for tool, want := range map[string]string{"read-note": "two bottles", "write-note": c.write, "delete-note": c.remove} {
				if got, _, _ := model.ToolResult("mcp__notes__" + tool); !strings.Contains(got, want) {
					t.Errorf("the model read %q of %s, want %q", got, tool, want)
				}
			}
			if len(store.text) != c.left {
				t.Errorf("the notes are %v, want %d of them", store.text, c.left)
			}
		})
	}
}
