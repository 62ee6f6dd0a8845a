// SPDX-License-Identifier: Apache-2.0

//go:build unix

package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/workspace"
)

// A boundRun is a workspace with two files and the options of a run that is bound to it. The test plays the CLI.
type boundRun struct {
	*WorkspaceBinding
	w       *workspace.Workspace
	t       *testing.T
	opts    claude.Options
	emitted []event.Payload
}

func onlyLooks(name string) bool { return name == "mcp__own__look" }

func newBoundRun(t *testing.T, space workspace.Options, run claude.Options) *boundRun {
	t.Helper()
	space.TempDir = t.TempDir()
	w, err := workspace.Open(t.Context(), &space)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	b := &boundRun{t: t, w: w, opts: run}
	b.WorkspaceBinding, err = BindWorkspace(&b.opts, w, &WorkspaceOptions{
		Emit:     func(p event.Payload) { b.emitted = append(b.emitted, p) },
		ReadOnly: onlyLooks,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.End)
	b.write("a.txt", "old")
	b.write("b.txt", "old")
	return b
}

func (b *boundRun) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.w.Root(), name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *boundRun) wants(name, text string) {
	b.t.Helper()
	if got, err := os.ReadFile(filepath.Join(b.w.Root(), name)); string(got) != text {
		b.t.Errorf("%s is %q, want %q: %v", name, got, text, err)
	}
}

func (b *boundRun) input(id, name, input string) *claude.PreToolUseInput {
	return &claude.PreToolUseInput{HookCommon: claude.HookCommon{Cwd: b.w.Root()}, ToolName: name, ToolUseID: id, ToolInput: json.RawMessage(input)}
}

// fire calls the hooks of an event that see every call, one after the other, and returns what the model reads.
func (b *boundRun) fire(ctx context.Context, event claude.HookEvent, in claude.HookInput) (read string) {
	b.t.Helper()
	for _, h := range b.opts.Hooks {
		if h.Event != event || h.Matcher != "" {
			continue
		}
		out, err := h.Func(ctx, in)
		if err != nil {
			b.t.Fatal(err)
		}
		switch out := out.(type) {
		case *claude.PreToolUseOutput:
			if claude.Denies(out) {
				return out.PermissionDecisionReason
			}
		case *claude.PostToolUseOutput:
			if out != nil {
				read += out.AdditionalContext
			}
		case *claude.PostToolUseFailureOutput:
			read += out.AdditionalContext
		case *claude.PostToolBatchOutput:
			read += out.AdditionalContext
		}
	}
	return read
}

func (b *boundRun) begins(id, name, input string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	if denied := b.fire(ctx, claude.HookPreToolUse, b.input(id, name, input)); denied != "" {
		b.t.Fatalf("%s was denied: %s", id, denied)
	}
}

// waits checks that a call does not get its turn, and gives up on it.
func (b *boundRun) waits(id, name, input string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 50*time.Millisecond)
	defer cancel()
	if denied := b.fire(ctx, claude.HookPreToolUse, b.input(id, name, input)); !strings.Contains(denied, "did not get its turn") {
		b.t.Errorf("%s got its turn beside the other: %q", id, denied)
	}
}

func (b *boundRun) fails(id string) (read string) {
	b.t.Helper()
	return b.fire(b.t.Context(), claude.HookPostToolUseFailure, &claude.PostToolUseFailureInput{ToolUseID: id})
}

const command = `{"command":"true"}`

func TestBindWorkspace_PathsOfEachCall(t *testing.T) {
	b := newBoundRun(t, workspace.Options{}, claude.Options{})
	all, file := workspace.Call{}, workspace.Call{Paths: []string{"a.txt"}}
	for _, c := range []struct {
		tool, input string
		want        *workspace.Call // nil if it changes nothing
	}{
		{"Write", `{"file_path":"a.txt"}`, &file},
		{"Edit", `{"file_path":"` + filepath.Join(b.w.Root(), "a.txt") + `"}`, &file},
		{"NotebookEdit", `{"notebook_path":"a.txt"}`, &file},
		{"Write", `{"file_path":"/elsewhere"}`, nil},
		{"Write", `{"file_path":"~/a.txt"}`, &all},
		{"Write", `{"file_path":"a.txt","notebook_path":"b.txt"}`, &all},
		{"Write", `{}`, &all},
		{"Write", `[]`, &all},
		{"Bash", command, &workspace.Call{Shell: true}},
		{"PowerShell", command, &workspace.Call{Shell: true}},
		{"EnterWorktree", `{}`, &all},
		{"mcp__own__change", `{}`, &all},
		{"mcp__own__look", `{}`, nil},
		{"Unheard", `{"file_path":"a.txt"}`, &all},
		{"Read", `{"file_path":"a.txt"}`, nil},
		{"Grep", `{}`, nil},
		{"WebFetch", `{}`, nil},
		{"Agent", `{}`, nil},
		{"Task", `{}`, nil},
		{"Workflow", `{}`, nil},
		{"Skill", `{}`, nil},
		{"SlashCommand", `{}`, nil},
	} {
		t.Run(c.tool+c.input, func(t *testing.T) {
			got, changes := b.w.CallOf(catalogue.Tools(), hookedCall(b.input("id", c.tool, c.input)), onlyLooks)
			if changes != (c.want != nil) {
				t.Fatalf("changes is %t", changes)
			}
			if !changes {
				return
			}
			want := *c.want
			want.ID, want.Tool = "id", c.tool
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the call (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBindWorkspace_CallHasItsRewrittenInput(t *testing.T) {
	hook := func(path string) claude.Hook {
		return claude.Hook{Event: claude.HookPreToolUse, Func: func(context.Context, claude.HookInput) (claude.HookOutput, error) {
			if path == "" {
				return nil, nil
			}
			return claude.RewriteTool(map[string]any{"file_path": path, "content": "x"}), nil
		}}
	}
	for name, hooks := range map[string][]claude.Hook{
		"one hook":                 {hook("b.txt")},
		"one that knows nothing":   {hook(""), hook("b.txt")},
		"one that knows it before": {hook("b.txt"), hook("")},
	} {
		for _, asked := range []string{"a.txt", "/elsewhere/a.txt"} {
			t.Run(name+" "+asked, func(t *testing.T) {
				b := newBoundRun(t, workspace.Options{}, claude.Options{Hooks: hooks})
				b.begins("w", "Write", `{"file_path":"`+asked+`","content":"x"}`)
				b.write("b.txt", "x")
				if notice := b.fails("w"); !strings.Contains(notice, "b.txt") {
					t.Errorf("the model receives %q", notice)
				}
				b.wants("b.txt", "old")
			})
		}
	}
}

func TestBindWorkspace_PermissionMayChangeThePath(t *testing.T) {
	elsewhere := claude.Allow{UpdatedInput: map[string]any{"file_path": "b.txt", "content": "x"}}
	for name, answer := range map[string]claude.PermissionResult{"a value": elsewhere, "a pointer": &elsewhere} {
		t.Run(name, func(t *testing.T) {
			b := newBoundRun(t, workspace.Options{}, claude.Options{CanUseTool: func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
				return answer, nil
			}})
			b.begins("w", "Write", `{"file_path":"a.txt","content":"x"}`)
			if _, err := b.opts.CanUseTool(t.Context(), &claude.PermissionRequest{ToolName: "Write", ToolUseID: "w"}); err != nil {
				t.Fatal(err)
			}
			b.write("b.txt", "x")
			b.fails("w")
			b.wants("b.txt", "old")
		})
	}
}

// A wait for others is no part of the time that a hook may take.
func TestBindWorkspace_HookWithATimeoutDoesNotWait(t *testing.T) {
	seen := 0
	b := newBoundRun(t, workspace.Options{}, claude.Options{Hooks: []claude.Hook{{
		Event: claude.HookPreToolUse, Timeout: time.Second,
		Func: func(context.Context, claude.HookInput) (claude.HookOutput, error) { seen++; return nil, nil },
	}}})
	b.begins("first", "Bash", command)
	over, cancel := context.WithCancel(t.Context())
	cancel() // a wait would end with a denial
	if out, err := b.opts.Hooks[0].Func(over, b.input("second", "Bash", command)); out != nil || err != nil || seen != 2 {
		t.Errorf("the hook was called %d times, want 2, and answers %v: %v", seen, out, err)
	}
	b.waits("second", "Bash", command)
}

// A call that a hook or a permission denies, by an answer, an error or a panic, is in the way of no other.
func TestBindWorkspace_ADeniedCallLeavesNothingOpen(t *testing.T) {
	for name, decide := range map[string]func() (claude.HookOutput, claude.PermissionResult, error){
		"a denial": func() (claude.HookOutput, claude.PermissionResult, error) {
			return claude.DenyTool("no"), claude.Deny{Message: "no"}, nil
		},
		"an error": func() (claude.HookOutput, claude.PermissionResult, error) { return nil, nil, errors.New("no") },
		"a panic":  func() (claude.HookOutput, claude.PermissionResult, error) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoundRun(t, workspace.Options{}, claude.Options{
				Hooks: []claude.Hook{
					{Event: claude.HookPreToolUse, Func: silentHook},
					{Event: claude.HookPreToolUse, Matcher: "Bash", Func: func(context.Context, claude.HookInput) (claude.HookOutput, error) {
						out, _, err := decide()
						return out, err
					}},
				},
				CanUseTool: func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
					_, result, err := decide()
					return result, err
				},
			})
			silently := func(do func()) {
				defer func() { _ = recover() }()
				do()
			}
			b.begins("hook", "Bash", command)
			silently(func() { _, _ = b.opts.Hooks[1].Func(t.Context(), b.input("hook", "Bash", command)) })
			b.begins("permission", "Bash", command)
			silently(func() {
				_, _ = b.opts.CanUseTool(t.Context(), &claude.PermissionRequest{ToolName: "Bash", ToolUseID: "permission"})
			})
			b.begins("next", "Bash", command)
		})
	}
}

// The end of a batch is the end of its calls. An id that was denied may come again with another answer of the model.
func TestBindWorkspace_BatchEnds(t *testing.T) {
	b := newBoundRun(t, workspace.Options{}, claude.Options{})
	_, _ = b.calls.Ask(t.Context(), agent.Question{ToolCall: event.ToolCall{ID: "call_0"}, Decide: func(context.Context, event.ToolCall) (agent.CallDecision, error) {
		return agent.CallDecision{Verdict: event.Deny}, nil
	}})
	b.begins("call_1", "Bash", command)
	b.write("a.txt", "changed")
	batch := &claude.PostToolBatchInput{ToolCalls: []claude.HookToolCall{{ToolUseID: "call_0"}, {ToolUseID: "call_1"}}}
	if read := b.fire(t.Context(), claude.HookPostToolBatch, batch); !strings.Contains(read, "a.txt") {
		t.Errorf("the model reads %q", read)
	}
	b.wants("a.txt", "old")
	b.begins("call_0", "Bash", command)
	b.waits("call_1", "Bash", command)
}

func TestBindWorkspace_ReasonOfACallThatIsNotMade(t *testing.T) {
	b := newBoundRun(t, workspace.Options{}, claude.Options{CanUseTool: func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
		return claude.Allow{UpdatedInput: map[string]any{"file_path": "a.txt"}}, nil
	}})
	if err := b.w.Close(); err != nil {
		t.Fatal(err)
	}
	denied := b.fire(t.Context(), claude.HookPreToolUse, b.input("id", "Bash", command))
	asked, err := b.opts.CanUseTool(t.Context(), &claude.PermissionRequest{ToolName: "Write", ToolUseID: "other"})
	if err != nil {
		t.Fatal(err)
	}
	deny, _ := asked.(claude.Deny)
	for _, reason := range []string{denied, deny.Message} {
		if !strings.HasPrefix(reason, "call rejected: no checkpoint could be taken: ") || strings.Contains(reason, "\n") {
			t.Errorf("the model reads %q", reason)
		}
	}
}

func TestBindWorkspace_InterruptedCommandIsRolledBackOnce(t *testing.T) {
	b := newBoundRun(t, workspace.Options{}, claude.Options{})
	b.begins("c", "Bash", command)
	b.write("a.txt", "half")
	in := &claude.PostToolUseInput{ToolUseID: "c", ToolName: "Bash", ToolResponse: json.RawMessage(`{"interrupted":true}`)}
	if read := b.fire(t.Context(), claude.HookPostToolUse, in); !strings.Contains(read, "a.txt") {
		t.Errorf("the model reads %q", read)
	}
	b.Saw(&claude.UserMessage{Content: []claude.Block{&claude.ToolResultBlock{ToolUseID: "c", IsError: true}}})
	b.wants("a.txt", "old")
	if len(b.emitted) != 1 {
		t.Errorf("%d rollbacks were emitted, want one", len(b.emitted))
	}
}

// The results of calls whose end no hook reports are their end.
func TestBindWorkspace_ResultsEndCalls(t *testing.T) {
	for _, failed := range []bool{false, true} {
		b := newBoundRun(t, workspace.Options{}, claude.Options{})
		b.begins("c", "Bash", command)
		b.write("a.txt", "new")
		b.Saw(&claude.UserMessage{Content: []claude.Block{&claude.ToolResultBlock{ToolUseID: "c", IsError: failed}}})
		b.wants("a.txt", map[bool]string{false: "new", true: "old"}[failed])
		b.begins("next", "Bash", command)
	}
}

func TestBindWorkspace_WithoutCheckpointsBindsNothing(t *testing.T) {
	b := newBoundRun(t, workspace.Options{NoCheckpoints: true}, claude.Options{})
	if len(b.opts.Hooks) > 0 || b.opts.NoBackgroundTasks {
		t.Errorf("%d hooks, NoBackgroundTasks %t, want none", len(b.opts.Hooks), b.opts.NoBackgroundTasks)
	}
}
