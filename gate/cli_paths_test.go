// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

const notebook = `{"cells":[{"cell_type":"code","execution_count":null,"id":"one","metadata":{},"outputs":[],"source":["1"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`

// store is a tool of ours that writes a file.
func store(ran *tally) *tool.Tool {
	return tool.Must("store", "Stores a file.", func(_ context.Context, in file) (string, error) {
		ran.add(filepath.Base(in.Path))
		return "stored", os.WriteFile(in.Path, []byte("stored"), 0o600)
	}, tool.Mutates, tool.FileWrite, tool.WithAlwaysLoad())
}

// Files may be written below src, and nowhere else: by the tools of the CLI, by tools of ours, by a
// subagent, through a link, and after a command has changed the directory. The CLI is started through
// a link, as it is where the temporary directory is one.
func TestCLI_FilesAreWrittenOnlyBelowWritablePaths(t *testing.T) {
	cli := claudetest.CLI(t)
	at := func(name string) string { return filepath.Join(cli.Work, name) }
	for name, content := range map[string]string{
		"src/edited.txt": "one\n", "edited.txt": "one\n", "src/n.ipynb": notebook, "n.ipynb": notebook,
		"sub/src/.keep": "", "other/.keep": "",
	} {
		cli.WriteFile(t, name, content)
	}
	door := filepath.Join(cli.Root, "door")
	for from, to := range map[string]string{at("src/away"): at("other"), door: cli.Work} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	calls := []struct {
		id, tool string
		input    script.Input
		file     string // that is there afterwards if it is allowed
		want     string // what the model reads of a denial
	}{
		{"write", "Write", script.Input{"file_path": at("src/new/w.txt"), "content": "x"}, "src/new/w.txt", ""},
		{"write-out", "Write", script.Input{"file_path": at("w.txt"), "content": "x"}, "w.txt", "Write may not write " + at("w.txt") + ". Write only to src in " + cli.Work + "."},
		{"write-away", "Write", script.Input{"file_path": at("src/away/w.txt"), "content": "x"}, "other/w.txt", "Write may not write " + at("other/w.txt")},
		{"write-up", "Write", script.Input{"file_path": at("src") + "/../up.txt", "content": "x"}, "up.txt", "Write may not write"},
		{"write-relative", "Write", script.Input{"file_path": "src/r.txt", "content": "x"}, "src/r.txt", ""},
		{"write-home", "Write", script.Input{"file_path": "~/h.txt", "content": "x"}, "../home/h.txt", "Write "},
		{"read", "Read", script.Input{"file_path": at("src/edited.txt")}, "", ""},
		{"edit", "Edit", script.Input{"file_path": at("src/edited.txt"), "old_string": "one", "new_string": "two"}, "", ""},
		{"read-out", "Read", script.Input{"file_path": at("edited.txt")}, "", ""},
		{"edit-out", "Edit", script.Input{"file_path": at("edited.txt"), "old_string": "one", "new_string": "two"}, "", "Edit may not write"},
		{"read-n", "Read", script.Input{"file_path": at("src/n.ipynb")}, "", ""},
		{"notebook", "NotebookEdit", script.Input{"notebook_path": at("src/n.ipynb"), "cell_id": "one", "new_source": "2"}, "", ""},
		{"read-n-out", "Read", script.Input{"file_path": at("n.ipynb")}, "", ""},
		{"notebook-out", "NotebookEdit", script.Input{"notebook_path": at("n.ipynb"), "cell_id": "one", "new_source": "2"}, "", "NotebookEdit may not write"},
		{"ours", "mcp__desk__store", script.Input{"path": at("src/ours.txt")}, "src/ours.txt", ""},
		{"ours-out", "mcp__desk__store", script.Input{"path": at("ours-out.txt")}, "ours-out.txt", "mcp__desk__store may not write"},
		{"ours-away", "mcp__desk__store", script.Input{"path": at("src/away/ours.txt")}, "other/ours.txt", "mcp__desk__store may not write"},
		{"cd", "Bash", script.Input{"command": "cd sub"}, "", ""},
		{"moved", "Write", script.Input{"file_path": "src/moved.txt", "content": "x"}, "sub/src/moved.txt", "Write may not write " + at("sub/src/moved.txt")},
		{"moved-back", "Write", script.Input{"file_path": at("src/moved.txt"), "content": "x"}, "src/moved.txt", ""},
	}
	var turns []script.Turn
	for _, c := range calls {
		turns = append(turns, script.Reply(script.ToolCall{ID: c.id, Name: c.tool, Input: c.input}).When(script.Not(script.IsSubagent())))
	}
	turns = append(turns,
		script.Call("Agent", script.Input{"subagent_type": "helper", "description": "help", "prompt": "write"}).When(script.Not(script.IsSubagent())),
		script.Reply(script.ToolCall{ID: "helper", Name: "Write", Input: script.Input{"file_path": at("src/helper.txt"), "content": "x"}}).When(script.IsSubagent()),
		script.Reply(script.ToolCall{ID: "helper-out", Name: "Write", Input: script.Input{"file_path": at("helper.txt"), "content": "x"}}).When(script.IsSubagent()),
		script.Text("Could not.").When(script.IsSubagent()), script.Text("Done.").When(script.Not(script.IsSubagent())))
	model := claudetest.NewModel(t, turns...).RequireAllUsed()

	ran := newTally()
	registry := tool.MustRegistry(nil, store(ran))
	server, err := claudecode.NewSDKServer(registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := answering(gate.Answer{Verdict: event.Allow})
	e := gate.NewEngine(gate.ForClaude(gate.Knows("desk", registry), gate.FromCapabilities(&gate.Permissions{
		FileWrite: gate.LevelAllow, ShellExecute: gate.LevelAsk, NetworkAccess: gate.LevelDeny, WritablePaths: []string{"./src/"},
	})), &gate.EngineOptions{Approver: p})
	registry.DecideBy(e)
	opts := cli.Options(model)
	opts.Dir = door
	cli.SetEnv(opts, model, map[string]string{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "ENABLE_TOOL_SEARCH": "false"})
	opts.Agents = map[string]claude.AgentDefinition{"helper": {Description: "writes", Prompt: "You write."}}
	opts.MCPServers = map[string]claude.MCPServer{"desk": server.Server()}
	bind(t, e, opts)
	if opts.PermissionMode != claude.ModeDefault {
		t.Errorf("the mode is %s, want one that trusts least", opts.PermissionMode)
	}
	turn(t, claudetest.Connect(t, opts), "write")

	for _, c := range calls {
		text, failed, ok := model.ToolResult(c.id)
		if !ok || failed != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: the model read %q (failed: %t), want %q", c.id, text, failed, c.want)
		}
		if c.file != "" && exists(cli, c.file) != (c.want == "") {
			t.Errorf("%s: %s is there: %t", c.id, c.file, exists(cli, c.file))
		}
	}
	if !exists(cli, "src/helper.txt") || exists(cli, "helper.txt") {
		t.Errorf("the subagent wrote inside: %t, outside: %t", exists(cli, "src/helper.txt"), exists(cli, "helper.txt"))
	}
	for name, want := range map[string]string{"src/edited.txt": "two\n", "edited.txt": "one\n", "n.ipynb": notebook} {
		if got, err := os.ReadFile(at(name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
		}
	}
	if got, err := os.ReadFile(at("src/n.ipynb")); err != nil || string(got) == notebook {
		t.Errorf("the notebook that may be changed was not: %v", err)
	}
	if p.asked.Load() != 1 {
		t.Errorf("asked %d times, want once, about the command", p.asked.Load())
	}
}
