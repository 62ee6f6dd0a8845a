// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

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
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// A bound is a workspace with two files and a run that is bound to it, of which the test plays the CLI.
type bound struct {
	*Binding
	t    *testing.T
	w    *Workspace
	opts claude.Options
	told []Restored
}

func newBound(t *testing.T, opts Options, run claude.Options) *bound {
	t.Helper()
	opts.Mounts, opts.AllowAnyRoot = []HostMount{{HostPath: host(t, "a.txt", "d/b.txt"), MountPath: "m"}}, true
	opts.TempDir = t.TempDir()
	w, err := Open(t.Context(), &opts)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return bindTo(t.Context(), t, w, run)
}

func bindTo(within context.Context, t *testing.T, w *Workspace, run claude.Options) *bound {
	t.Helper()
	b := &bound{t: t, w: w, opts: run}
	var err error
	b.Binding, err = w.Bind(&b.opts, &BindOptions{Within: within, Emit: func(p event.Payload) { b.told = append(b.told, p.(Restored)) }})
	must(t, err)
	t.Cleanup(b.End)
	return b
}

// asks has the hooks that see every call decide about one, one after the other.
func (b *bound) asks(ctx context.Context, id, name string, input any) (denied string) {
	b.t.Helper()
	raw, err := json.Marshal(input)
	must(b.t, err)
	for _, h := range b.opts.Hooks {
		if h.Event != claude.HookPreToolUse || h.Matcher != "" {
			continue
		}
		in := &claude.PreToolUseInput{HookCommon: claude.HookCommon{Cwd: b.w.Root()}, ToolName: name, ToolUseID: id, ToolInput: raw}
		out, err := h.Func(ctx, in)
		if err != nil {
			return err.Error()
		}
		if claude.Denies(out) {
			return out.(*claude.PreToolUseOutput).PermissionDecisionReason
		}
	}
	return ""
}

func (b *bound) begins(id, name string, input any) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	if denied := b.asks(ctx, id, name, input); denied != "" {
		b.t.Fatalf("%s was denied: %s", id, denied)
	}
}

// waits checks that a call does not get its turn, and gives up on it.
func (b *bound) waits(id, name string, input any) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 50*time.Millisecond)
	defer cancel()
	if denied := b.asks(ctx, id, name, input); !strings.Contains(denied, "did not get its turn") {
		b.t.Errorf("%s got its turn beside the other: %q", id, denied)
	}
}

func (b *bound) fails(id string) (told string) {
	b.t.Helper()
	out, err := b.failed(b.t.Context(), &claude.PostToolUseFailureInput{ToolUseID: id})
	must(b.t, err)
	if out == nil {
		return ""
	}
	return out.AdditionalContext
}

func (b *bound) write(name, text string) {
	b.t.Helper()
	must(b.t, os.WriteFile(filepath.Join(b.w.Root(), name), []byte(text), 0o644))
}

func (b *bound) wants(files map[string]string) {
	b.t.Helper()
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(b.w.Root(), name))
		if want == "" && err == nil || want != "" && string(got) != want {
			b.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

type input map[string]any

func TestNoCallBeginsWhenTheRunIsOver(t *testing.T) {
	b := newBound(t, Options{}, claude.Options{})
	b.End()
	if denied := b.asks(t.Context(), "late", "Bash", input{"command": "true"}); !strings.Contains(denied, "the run is over") {
		t.Errorf("a hook that came late answered %q, want a denial", denied)
	}
	next := bindTo(t.Context(), t, b.w, claude.Options{})
	next.begins("next", "Bash", input{"command": "true"})
}

// The hook of a call whose end nobody could tell would hold the workspace to the end of the run.
func TestACallWithoutAnIDIsNotMade(t *testing.T) {
	b := newBound(t, Options{}, claude.Options{})
	if denied := b.asks(t.Context(), "", "Bash", input{"command": "true"}); !strings.Contains(denied, "no id") {
		t.Errorf("the answer is %q, want a denial", denied)
	}
	b.begins("other", "Bash", input{"command": "true"})
}

// An id that was denied may come again with another answer of the model.
func TestAnIDThatWasDeniedCanBeUsedAgain(t *testing.T) {
	deny := true
	b := newBound(t, Options{}, claude.Options{Hooks: []claude.Hook{
		claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
			if deny {
				return claude.DenyTool("not now"), nil
			}
			return nil, nil
		}),
	}})
	if b.asks(t.Context(), "call_0", "Bash", input{"command": "x"}) == "" {
		t.Fatal("the call is not denied")
	}
	if _, err := b.batchEnded(t.Context(), &claude.PostToolBatchInput{ToolCalls: []claude.HookToolCall{{ToolUseID: "call_0"}}}); err != nil {
		t.Fatal(err)
	}
	deny = false
	b.begins("call_0", "Bash", input{"command": "x"})
	b.write("m/a.txt", "changed")
	b.fails("call_0")
	b.wants(map[string]string{"m/a.txt": "a.txt"})
}

func TestACallIsThatOfTheInputItIsMadeWith(t *testing.T) {
	hook := func(path string) claude.Hook {
		return claude.Hook{Event: claude.HookPreToolUse, Func: func(context.Context, claude.HookInput) (claude.HookOutput, error) {
			if path == "" {
				return nil, nil
			}
			return claude.RewriteTool(input{"file_path": path, "content": "x"}), nil
		}}
	}
	for name, hooks := range map[string][]claude.Hook{
		"one hook":                 {hook("m/d/b.txt")},
		"one that knows nothing":   {hook(""), hook("m/d/b.txt")},
		"one that knows it before": {hook("m/d/b.txt"), hook("")},
	} {
		for _, asked := range []string{"m/a.txt", "/elsewhere/a.txt"} {
			t.Run(name+" "+asked, func(t *testing.T) {
				b := newBound(t, Options{}, claude.Options{Hooks: hooks})
				b.begins("w", "Write", input{"file_path": asked, "content": "x"})
				b.write("m/d/b.txt", "x")
				if told := b.fails("w"); !strings.Contains(told, "m/d/b.txt") {
					t.Errorf("the model is told %q", told)
				}
				b.wants(map[string]string{"m/d/b.txt": "d/b.txt"})
			})
		}
	}
}

func TestAPermissionMayChangeThePathOfACall(t *testing.T) {
	elsewhere := claude.Allow{UpdatedInput: input{"file_path": "m/d/b.txt", "content": "x"}}
	b := newBound(t, Options{}, claude.Options{CanUseTool: func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
		return elsewhere, nil
	}})
	b.begins("w", "Write", input{"file_path": "m/a.txt", "content": "x"})
	if _, err := b.opts.CanUseTool(t.Context(), &claude.PermissionRequest{ToolName: "Write", ToolUseID: "w"}); err != nil {
		t.Fatal(err)
	}
	b.write("m/d/b.txt", "x")
	b.fails("w")
	b.wants(map[string]string{"m/d/b.txt": "d/b.txt"})
}

// hasClaims waits until as many calls are at work or wait for their turn.
func (b *bound) hasClaims(want int) {
	b.t.Helper()
	turns := &b.w.txs.turns
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		turns.mu.Lock()
		got := len(turns.claims)
		turns.mu.Unlock()
		if got == want {
			return
		}
	}
	b.t.Fatalf("there are not %d calls", want)
}

// What a path leads to is known when the call is alone with it, not before.
func TestAPathIsLookedAtWhenTheTurnHasCome(t *testing.T) {
	for name, x := range map[string]struct {
		change func(b *bound)
		write  string
	}{
		"its folder became a link": {func(b *bound) {
			must(b.t, os.Rename(filepath.Join(b.w.Root(), "m/d"), filepath.Join(b.w.Root(), "m/real")))
			must(b.t, os.Symlink("real", filepath.Join(b.w.Root(), "m/d")))
		}, "m/real/new.txt"},
		"its folder is gone": {func(b *bound) { must(b.t, os.RemoveAll(filepath.Join(b.w.Root(), "m/d"))) }, "m/d/new.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBound(t, Options{}, claude.Options{})
			b.begins("command", "Bash", input{"command": "true"})
			began := make(chan string)
			go func() { began <- b.asks(t.Context(), "w", "Write", input{"file_path": "m/d/new.txt", "content": "x"}) }()
			b.hasClaims(2)
			x.change(b)
			b.drop("command")
			if denied := <-began; denied != "" {
				t.Fatal(denied)
			}
			before := tree(t, b.w.Root())
			must(t, os.MkdirAll(filepath.Join(b.w.Root(), "m/d"), 0o755))
			b.write("m/d/new.txt", "x")
			b.wants(map[string]string{x.write: "x"})
			b.fails("w")
			if diff := cmp.Diff(before, tree(t, b.w.Root())); diff != "" {
				t.Errorf("after the rollback (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPathsThatMayMeanSomethingElseAreAlone(t *testing.T) {
	b := newBound(t, Options{}, claude.Options{})
	outside := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(filepath.Join(b.w.Root(), "not-yet"), outside))
	must(t, os.Link(filepath.Join(b.w.Root(), "m/a.txt"), filepath.Join(b.w.Root(), "m/twin.txt")))
	for name, path := range map[string]string{
		"a space": " m/new.txt", "home": "~/new.txt", "two ways to write it": "m/ne\u0301w.txt",
		"a file with two names": "m/a.txt", "a link from elsewhere to what is not there yet": outside,
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			b.begins("other", "Write", input{"file_path": "m/d/b.txt", "content": "x"})
			defer b.drop("other")
			b.waits("w", "Write", input{"file_path": path, "content": "x"})
		})
	}
}

// A wait for others is no part of the time that a hook may take.
func TestAHookWithATimeoutDoesNotWait(t *testing.T) {
	seen := 0
	b := newBound(t, Options{}, claude.Options{Hooks: []claude.Hook{{
		Event: claude.HookPreToolUse, Timeout: time.Second,
		Func: func(context.Context, claude.HookInput) (claude.HookOutput, error) { seen++; return nil, nil },
	}}})
	b.begins("first", "Bash", input{"command": "true"})
	if _, err := b.opts.Hooks[0].Func(t.Context(), &claude.PreToolUseInput{ToolName: "Bash", ToolUseID: "second"}); err != nil || seen != 2 {
		t.Errorf("the hook was called %d times, want 2: %v", seen, err)
	}
	b.waits("second", "Bash", input{"command": "true"})
}

func TestAHookThatPanicsLeavesNothingOpen(t *testing.T) {
	b := newBound(t, Options{}, claude.Options{Hooks: []claude.Hook{
		{Event: claude.HookPreToolUse, Func: func(context.Context, claude.HookInput) (claude.HookOutput, error) { return nil, nil }},
		{Event: claude.HookPreToolUse, Func: func(_ context.Context, in claude.HookInput) (claude.HookOutput, error) {
			if in.(*claude.PreToolUseInput).ToolUseID == "bad" {
				panic("no")
			}
			return nil, nil
		}},
	}})
	func() {
		defer func() { _ = recover() }()
		b.asks(t.Context(), "bad", "Bash", input{"command": "true"})
	}()
	b.begins("next", "Bash", input{"command": "true"})
}

func TestAWaitThatIsGivenUpLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	b := newBound(t, Options{}, claude.Options{})
	b.begins("first", "Bash", input{"command": "true"})
	b.waits("second", "Bash", input{"command": "true"})
	b.drop("first")
	b.begins("third", "Bash", input{"command": "true"})
	if n := len(b.w.txs.turns.claims); n != 1 {
		t.Errorf("%d claims are left, want that of the third", n)
	}
}

func TestACallThatCannotBeKeptIsNotMade(t *testing.T) {
	b := newBound(t, Options{Tree: TreeOptions{MaxDisk: 64 << 10}}, claude.Options{})
	b.begins("big", "Bash", input{"command": "true"})
	b.write("big", strings.Repeat("x", 1<<20)) // zeros might take no room
	b.drop("big")
	denied := b.asks(t.Context(), "next", "Bash", input{"command": "true"})
	if !strings.Contains(denied, "could not be put back") || strings.Contains(denied, "\n") {
		t.Errorf("the model reads %q", denied)
	}
	must(t, os.Remove(filepath.Join(b.w.Root(), "big")))
	b.begins("after", "Bash", input{"command": "true"})
}

func TestKeepFailedShellKeepsTheFilesOfCommandsAlone(t *testing.T) {
	b := newBound(t, Options{KeepFailedShell: true}, claude.Options{})
	b.begins("command", "Bash", input{"command": "true"})
	b.write("m/a.txt", "kept")
	if told := b.fails("command"); told != "" {
		t.Errorf("the model is told %q, want nothing", told)
	}
	b.begins("write", "Write", input{"file_path": "m/d/b.txt", "content": "x"})
	b.write("m/d/b.txt", "x")
	b.fails("write")
	b.wants(map[string]string{"m/a.txt": "kept", "m/d/b.txt": "d/b.txt"})
	if len(b.told) != 1 || b.told[0].Tool != "Write" {
		t.Errorf("told is %+v, want the rollback of Write", b.told)
	}
}

func TestACommandThatWasInterruptedIsRolledBackOnce(t *testing.T) {
	b := newBound(t, Options{}, claude.Options{})
	b.begins("c", "Bash", input{"command": "true"})
	b.write("m/a.txt", "half")
	out, err := b.succeeded(t.Context(), &claude.PostToolUseInput{ToolUseID: "c", ToolName: "Bash", ToolResponse: json.RawMessage(`{"interrupted":true}`)})
	if err != nil || out == nil || !strings.Contains(out.AdditionalContext, "m/a.txt") {
		t.Errorf("the answer is %+v, %v", out, err)
	}
	b.Saw(&claude.UserMessage{Content: []claude.Block{&claude.ToolResultBlock{ToolUseID: "c", IsError: true}}})
	b.wants(map[string]string{"m/a.txt": "a.txt"})
	if len(b.told) != 1 {
		t.Errorf("told %d times, want once", len(b.told))
	}
}

// A tool of this program runs another agent in its own workspace: that one's calls are part of its own.
func TestARunWithinACallIsPartOfIt(t *testing.T) {
	b := newBound(t, Options{}, claude.Options{})
	b.begins("outer", "mcp__own__delegate", input{})
	delegate := tool.Must("delegate", "Run another.", func(ctx context.Context, _ struct{}) (string, error) {
		inner := bindTo(ctx, t, b.w, claude.Options{})
		defer inner.End()
		inner.begins("one", "Bash", input{"command": "true"})
		inner.waits("two", "Bash", input{"command": "true"})
		inner.write("kept-by-inner", "x")
		inner.drop("one")
		inner.begins("two", "Bash", input{"command": "true"})
		inner.write("undone-by-inner", "x")
		inner.fails("two")
		inner.wants(map[string]string{"kept-by-inner": "x", "undone-by-inner": ""})
		return "", errors.New("all of it failed")
	})
	registry := tool.MustRegistry(&tool.Options{Around: ToolTx(b.w, nil)}, delegate)
	result := registry.Execute(t.Context(), tool.Call{ID: "outer", Name: "delegate"})
	if result.OK() || !strings.Contains(result.Render(), "kept-by-inner") {
		t.Errorf("the model reads %q", result.Render())
	}
	b.wants(map[string]string{"kept-by-inner": ""})
}
