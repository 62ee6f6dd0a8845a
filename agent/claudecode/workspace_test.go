// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// A shop is a workspace with one file.
func shop(t *testing.T) *workspace.Workspace {
	t.Helper()
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "price.txt"), []byte("7\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(t.Context(), &workspace.Options{
		Mounts: []workspace.HostMount{{HostPath: host, MountPath: "shop"}}, AllowedHostRoots: []string{host},
	})
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

// changed are the paths that differ from what was mounted.
func changed(t *testing.T, w *workspace.Workspace) []string {
	t.Helper()
	now, err := w.Tree().Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer now.Release()
	changes, err := w.Tree().Changes(w.Base(), now)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	return paths
}

// Two subagents work in one workspace at the same time, in a cell. The command of one fails: what it has
// changed is put back, what the other has made meanwhile stays, and the run reports it.
func TestWorkspace_FailedCommandKeepsFilesOfAnotherSubagent(t *testing.T) {
	w := shop(t)
	ask := func(name string) script.Block {
		return script.ToolCall{Name: "Agent", Input: script.Input{"subagent_type": "general-purpose", "description": name, "prompt": "You are " + name}}
	}
	fails := "echo 9 > shop/price.txt; chmod 600 shop/price.txt; mkdir shop/new; echo x > shop/new/x; perl -e 'select(undef,undef,undef,0.4)'; exit 1"
	model := claudetest.NewModel(
		t,
		script.Reply(ask("ALPHA"), ask("BETA")).When(script.Not(script.IsSubagent())),
		script.Reply(bash("pwd; "+fails)).When(script.IsSubagent(), script.LastUserText("You are ALPHA")),
		script.Call("Write", script.Input{"file_path": filepath.Join(w.Root(), "beta.txt"), "content": "b"}).When(script.IsSubagent(), script.LastUserText("You are BETA")),
		script.Text("I tried.").When(script.IsSubagent()).Times(2),
		script.Text("Done.").When(script.Not(script.IsSubagent())),
	)
	base := claudetest.CLI(t).Options(model)
	base.Dir, base.PermissionMode = "", claude.ModeBypassPermissions
	got := in(t, nil, base, agent.Request{Settings: agent.Settings{Workspace: w}})
	if done := got[len(got)-1].Payload.(event.Done); done.Status != event.DoneSuccess {
		t.Fatalf("the run ended with %+v", done)
	}
	if diff := cmp.Diff([]string{"beta.txt"}, changed(t, w)); diff != "" {
		t.Errorf("what is left of the run (-want +got):\n%s", diff)
	}
	restored := of[workspace.Restored](got)
	if len(restored) != 1 || restored[0].Tool != "Bash" {
		t.Fatalf("the reported rollbacks are %+v, want that of the command", restored)
	}
	if diff := cmp.Diff([]string{"shop/new", "shop/new/x", "shop/price.txt"}, restored[0].Restored[len(restored[0].Restored)-3:]); diff != "" {
		t.Errorf("the reported paths (-want +got):\n%s", diff)
	}
	if !anyRequest(model, "its changes were rolled back") {
		t.Error("the model did not receive the notice")
	}
}

func anyRequest(model *claudetest.Model, text string) bool {
	for _, r := range model.Requests() {
		if r.SawText(text) {
			return true
		}
	}
	return false
}

// A run is stopped in the middle of a command: what that has done by then is put back.
func TestWorkspace_InterruptedCommandIsRolledBack(t *testing.T) {
	w := shop(t)
	begun := filepath.Join(w.Root(), "begun")
	model := claudetest.NewModel(t, script.Reply(bash("echo 9 > shop/price.txt; touch begun; perl -e 'select(undef,undef,undef,20)'")))
	base := claudetest.CLI(t).Options(model)
	base.Dir, base.PermissionMode = "", claude.ModeBypassPermissions
	runner, err := agent.NewRunner(claudecode.New(base), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(inTime(t))
	go func() {
		for ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond) // the command is a process of its own
			if _, err := os.Stat(begun); err == nil {
				stop(errors.New("enough"))
			}
		}
	}()
	got := record(t, runner.Run(ctx, agent.Request{Prompt: "go", Settings: agent.Settings{Workspace: w}}))
	if done := got[len(got)-1].Payload.(event.Done); done.Status != event.DoneInterrupted {
		t.Errorf("the run ended with %+v, want an interruption", done)
	}
	if left := changed(t, w); left != nil {
		t.Errorf("the interrupted command left %v", left)
	}
	if all := w.Restored(); len(all) != 1 || !strings.Contains(strings.Join(all[0].Restored, " "), "begun") {
		t.Errorf("the workspace reports %+v, want one rollback", all)
	}
}

func TestWorkspace_WorkingDirectoryMustBeInside(t *testing.T) {
	w := shop(t)
	model := claudetest.NewModel(t, script.Reply(bash("pwd")), script.Text("Done."))
	base := claudetest.CLI(t).Options(model)
	base.PermissionMode = claude.ModeBypassPermissions
	in(t, nil, base, agent.Request{Settings: agent.Settings{Workspace: w, Dir: "shop"}})
	if !model.LastRequest().SawText(filepath.Join(w.Root(), "shop")) {
		t.Error("the command did not run in the folder of the workspace")
	}
	for _, dir := range []string{"..", "/", w.Root() + "x"} {
		for _, err := range claudecode.New(base).Run(t.Context(), agent.Request{Prompt: "go", Settings: agent.Settings{Workspace: w, Dir: dir}}) {
			if err == nil || !strings.Contains(advice.Text(err), "Request.Dir") {
				t.Errorf("%s: %v, want a refusal", dir, err)
			}
		}
	}
}

// A tool of this program has another agent work in its own workspace. Its calls are part of the tool's
// call: they wait for each other and not for that, and go with it.
func TestWorkspace_ToolMayRunAnotherAgentInIt(t *testing.T) {
	w := shop(t)
	other := claudetest.NewModel(t,
		script.Reply(bash("echo 9 > shop/price.txt"), bash("echo x > undone; exit 1"),
			script.ToolCall{Name: "mcp__drover__note", Input: script.Input{}}),
		script.Text("Sold."),
	)
	inner := claudetest.CLI(t).Options(other)
	inner.Dir, inner.PermissionMode = "", claude.ModeBypassPermissions
	cli := claudetest.CLI(t)
	cli.SetEnv(inner, other, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	note := tool.Must("note", "Write a note.", func(context.Context, struct{}) (string, error) {
		return "noted", os.WriteFile(filepath.Join(w.Root(), "note"), []byte("n"), 0o600)
	})
	notes := tool.MustRegistry(&tool.Options{Around: workspace.ToolTx(w, nil)}, note)
	delegate := tool.Must("delegate", "Have another agent do it.", func(ctx context.Context, in struct {
		Fail bool `json:"fail"`
	},
	) (string, error) {
		for _, err := range claudecode.New(inner).Run(ctx, agent.Request{Prompt: "sell", Settings: agent.Settings{Workspace: w}, Registry: notes}) {
			if err != nil {
				return "", err
			}
		}
		if diff := cmp.Diff([]string{"note", "shop/price.txt"}, changed(t, w)); diff != "" {
			t.Errorf("what the other agent left (-want +got):\n%s", diff)
		}
		if in.Fail {
			return "", errors.New("it was all wrong")
		}
		return "done", nil
	})
	model := claudetest.NewModel(t,
		script.Call("mcp__drover__delegate", script.Input{"fail": true}), script.Text("Well."),
	)
	base := cli.Options(model)
	base.Dir, base.PermissionMode = "", claude.ModeBypassPermissions
	cli.SetEnv(base, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	tools := tool.MustRegistry(&tool.Options{Around: workspace.ToolTx(w, nil)}, delegate)
	got := in(t, nil, base, agent.Request{Settings: agent.Settings{Workspace: w}, Registry: tools})
	if done := got[len(got)-1].Payload.(event.Done); done.Status != event.DoneSuccess {
		t.Fatalf("the run ended with %+v", done)
	}
	if left := changed(t, w); left != nil {
		t.Errorf("the call that failed left %v", left)
	}
	if !model.LastRequest().SawText("shop/price.txt") {
		t.Error("the model did not receive the notice")
	}
}
