// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
	"github.com/drover-agents/drover/workspace/files"
)

// project is a workspace with a repository that has an ignored file.
func project(t *testing.T, opts workspace.Options) *workspace.Workspace {
	t.Helper()
	host := t.TempDir()
	for name, text := range map[string]string{"src/main.go": "package main\n", "src/.env": "SECRET=1\n", "src/.gitignore": ".env\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(host, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(host, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := exec.Command("sh", "-c", "git init -q . && git add . && git -c user.name=a -c user.email=a@example.com commit -qm one")
	git.Dir = filepath.Join(host, "src")
	git.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + host, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("git: %v\n%s", err, out)
	}
	opts.Mounts = []workspace.HostMount{{HostPath: filepath.Join(host, "src")}}
	opts.AllowedHostRoots = []string{host}
	w, err := workspace.Open(t.Context(), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// there are the names in a folder of the workspace.
func there(t *testing.T, w *workspace.Workspace, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.Root(), dir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// leave makes two files, one of which the tool call then pays for by failing.
var leave = tool.Must("leave", "Write a file, then fail if told so.", func(ctx context.Context, in struct {
	Name string `json:"name"`
	Fail bool   `json:"fail,omitzero"`
},
) (string, error) {
	fsys, ok := files.From(ctx)
	if !ok {
		return "", errors.New("there are no files")
	}
	if s, ok := session.From(ctx); ok {
		if _, err := s.Dispatch(ctx, session.FileModified{Path: in.Name, Tool: "leave"}); err != nil {
			return "", err
		}
	}
	if err := fsys.WriteFile(in.Name, []byte("left\n"), nil); err != nil {
		return "", err
	}
	if in.Fail {
		return "", errors.New("it went wrong")
	}
	return "done", nil
})

// Calls of the real CLI that fail leave nothing behind, ignored files and a repository included; those that
// succeed stay; the model reads what was put back; and calls that the CLI makes at the same time, one of
// which is denied, do not wait for each other for ever.
func TestWorkspace_FailedCallOfTheRealCLIIsRolledBack(t *testing.T) {
	for name, cli := range map[string]*claudetest.RealCLI{"pinned": claudetest.CLI(t), "oldest": claudetest.OldestCLI(t)} {
		t.Run(name, func(t *testing.T) { undoneCalls(t, cli) })
	}
}

func undoneCalls(t *testing.T, cli *claudetest.RealCLI) {
	w := project(t, workspace.Options{})
	s := session.New(nil)
	registry := tool.MustRegistry(&tool.Options{Around: workspace.ToolTx(w, session.ToolTx(s, nil))}, leave)
	server, err := claudecode.NewSDKServer(registry, &claudecode.SDKServerOptions{Name: "own"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	call := func(id, name string, input script.Input) script.Block {
		return script.ToolCall{ID: id, Name: name, Input: input}
	}
	bash := func(id, command string) script.Block {
		return call(id, "Bash", script.Input{"command": command})
	}
	model := claudetest.NewModel(t,
		script.Reply(
			bash("fails", `cd src && rm .env && echo "package other" > main.go && git -c user.name=a -c user.email=a@example.com commit -qam two && mkdir -p deep/er && mv .gitignore deep/er/ && exit 3`),
			bash("stays", "echo one > kept.txt"),
			call("write", "Write", script.Input{"file_path": filepath.Join(w.Root(), "new/file.txt"), "content": "x"}),
			call("own-fails", "mcp__own__leave", script.Input{"name": "gone.txt", "fail": true}),
			call("own-stays", "mcp__own__leave", script.Input{"name": "own.txt"}),
			bash("look1", "ls"), bash("no", "cat kept.txt"), bash("look2", "ls -a"),
		),
		script.Text("Done."),
	)
	opts := cli.Options(model)
	opts.Dir, opts.PermissionMode = w.Root(), claude.ModeBypassPermissions
	opts.MCPServers = map[string]claude.MCPServer{"own": server.Server()}
	cli.SetEnv(opts, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	opts.Hooks = []claude.Hook{claude.On("Bash", func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		if in.ToolUseID == "no" {
			return claude.DenyTool("not this one"), nil
		}
		return nil, nil
	})}
	var restored []event.Payload
	binding, err := claudecode.BindWorkspace(opts, w, &claudecode.WorkspaceOptions{Emit: func(p event.Payload) { restored = append(restored, p) }})
	if err != nil {
		t.Fatal(err)
	}
	before, err := w.Tree().Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for m, err := range claude.Query(t.Context(), "work", opts) {
		if err != nil {
			t.Fatal(err)
		}
		binding.Saw(m)
	}
	binding.End()

	after, err := w.Tree().Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changes, err := w.Tree().Changes(before, after)
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, c := range changes {
		changed = append(changed, c.Path)
	}
	if diff := cmp.Diff([]string{"kept.txt", "new", "new/file.txt", "own.txt"}, changed); diff != "" {
		t.Errorf("what the calls changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{".env", ".git", ".gitignore", "main.go"}, there(t, w, "src")); diff != "" {
		t.Errorf("the repository (-want +got):\n%s", diff)
	}
	last := model.Requests()[1]
	for _, want := range []string{"its changes were rolled back", "src/main.go", "src/.env", "gone.txt", "not this one"} {
		if !last.SawText(want) {
			t.Errorf("the model does not read %q", want)
		}
	}
	if len(restored) != 2 {
		t.Errorf("%d rollbacks were reported, want 2: %+v", len(restored), restored)
	}
	var calls []string
	modified, _ := session.Query[session.ModifiedFiles](s).Latest()
	for f := range modified.All() {
		calls = append(calls, f.Path)
	}
	if got := strings.Join(calls, " "); got != "own.txt" {
		t.Errorf("the session knows of %q, want own.txt alone: session and files go together", got)
	}
}

// A call may be blocked by any component; the calls beside it and after it get their turns.
func TestWorkspace_BlockedCallDoesNotDelayOthers(t *testing.T) {
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
	binding, err := claudecode.BindWorkspace(opts, w, nil)
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
