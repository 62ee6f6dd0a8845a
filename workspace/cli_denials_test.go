// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/workspace"
)

// Whoever keeps a call from being made, the calls beside it and after it get their turns.
func TestACallThatIsNotMadeIsInNobodysWay(t *testing.T) {
	for name, cli := range map[string]*claudetest.RealCLI{"pinned": claudetest.CLI(t), "oldest": claudetest.OldestCLI(t)} {
		t.Run(name, func(t *testing.T) { unmadeCalls(t, cli) })
	}
}

func unmadeCalls(t *testing.T, cli *claudetest.RealCLI) {
	w := project(t, workspace.Options{})
	call := func(id, name string, input script.Input) script.Block {
		return script.ToolCall{ID: id, Name: name, Input: input}
	}
	bash := func(id, command string) script.Block { return call(id, "Bash", script.Input{"command": command}) }
	at := func(name string) string { return filepath.Join(w.Root(), name) }
	model := claudetest.NewModel(t,
		script.Reply(
			bash("by-rule", "wc -l kept1"), bash("by-hook", "ls hook"), bash("by-user", "touch user"), bash("by-panic", "ls panic"),
			call("bad-input", "Write", script.Input{"file_path": at("x")}), call("no-file", "Edit", script.Input{"file_path": at("none"), "old_string": "a", "new_string": "b"}),
			call("unread", "Write", script.Input{"file_path": at("src/main.go"), "content": "x"}),
			call("unknown", "Nonsense", script.Input{"a": 1}),
			bash("bad-bash", ""),
			call("notebook", "NotebookEdit", script.Input{"notebook_path": at("n.ipynb"), "new_source": "x"}),
			bash("kept1", "touch kept1"), bash("look", "ls"),
			call("trimmed", "Write", script.Input{"file_path": at("trimmed") + " ", "content": "x"}),
		),
		script.Reply(bash("kept2", "touch kept2"), call("w", "Write", script.Input{"file_path": at("kept3"), "content": "x"})),
		script.Text("Done."),
	)
	opts := cli.Options(model)
	opts.Dir = w.Root()
	opts.DisallowedTools = []string{"Bash(wc:*)"}
	opts.CanUseTool = func(_ context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
		if req.ToolUseID == "by-user" {
			return claude.Deny{Message: "no"}, nil
		}
		return claude.Allow{}, nil
	}
	opts.Hooks = []claude.Hook{
		claude.On("Bash", func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
			switch in.ToolUseID {
			case "by-hook":
				return claude.DenyTool("not this one"), nil
			case "by-panic":
				panic("no")
			}
			return nil, nil
		}),
		claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) { return nil, nil }),
	}
	binding, err := w.Bind(opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	for m, err := range claude.Query(ctx, "work", opts) {
		if err != nil {
			t.Fatal(err)
		}
		binding.Saw(m)
	}
	binding.End()
	if diff := cmp.Diff([]string{"kept1", "kept2", "kept3", "src", "trimmed"}, there(t, w, ".")); diff != "" {
		t.Errorf("what is there (-want +got):\n%s", diff)
	}
}
