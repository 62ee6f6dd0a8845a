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

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// A bound is a workspace with two files and the calls of an agent's run, which the test makes.
type bound struct {
	t       *testing.T
	w       *Workspace
	outer   *Tx // which the run is part of
	txs     map[string]*Tx
	emitted []Restored
}

func newBound(t *testing.T, opts Options) *bound {
	t.Helper()
	opts.Mounts, opts.AllowAnyRoot = []HostMount{{HostPath: host(t, "a.txt", "d/b.txt"), MountPath: "m"}}, true
	opts.TempDir = t.TempDir()
	w, err := Open(t.Context(), &opts)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return bindTo(t.Context(), t, w)
}

func bindTo(within context.Context, t *testing.T, w *Workspace) *bound {
	t.Helper()
	b := &bound{t: t, w: w, outer: TxFrom(within), txs: map[string]*Tx{}}
	t.Cleanup(b.End)
	return b
}

func (b *bound) Begin(ctx context.Context, call Call) error {
	call.Agent, call.Emit = true, func(p event.Payload) { b.emitted = append(b.emitted, p.(Restored)) }
	_, tx, err := b.w.Begin(WithTx(ctx, b.outer), call)
	if err == nil {
		b.txs[string(call.ID)] = tx
	}
	return err
}

func (b *bound) Commit(id string) { b.txs[id].Commit() }

func (b *bound) End() {
	for _, tx := range b.txs {
		tx.Undo(context.Background())
	}
}

// begins begins a call that changes these paths, or everything.
func (b *bound) begins(id string, paths ...string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	must(b.t, b.Begin(ctx, Call{ID: event.CallID(id), Tool: "mcp__own__" + id, Paths: paths}))
}

// waits checks that a call does not get its turn, and gives up on it.
func (b *bound) waits(id string, paths ...string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.Begin(ctx, Call{ID: event.CallID(id), Paths: paths}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(advice.Text(err), "did not get its turn") {
		b.t.Errorf("%s got its turn beside the other: %v", id, err)
	}
}

func (b *bound) fails(id string) (text string) { return b.txs[id].Undo(b.t.Context()) }

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
func TestBegin_ResolvesPathsWhenItsTurnHasCome(t *testing.T) {
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
			b := newBound(t, Options{})
			b.begins("command")
			began := make(chan error)
			go func() { began <- b.Begin(t.Context(), Call{ID: "w", Paths: []string{"m/d/new.txt"}}) }()
			b.hasClaims(2)
			x.change(b)
			b.Commit("command")
			must(t, <-began)
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

func TestBegin_AmbiguousPathsClaimTheWholeWorkspace(t *testing.T) {
	b := newBound(t, Options{})
	outside := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(filepath.Join(b.w.Root(), "not-yet"), outside))
	must(t, os.Link(filepath.Join(b.w.Root(), "m/a.txt"), filepath.Join(b.w.Root(), "m/twin.txt")))
	for name, path := range map[string]string{
		"no name": "", "a space": " m/new.txt", "home": "~/new.txt", "two ways to write it": "m/ne\u0301w.txt",
		"a file with two names": "m/a.txt", "a link from elsewhere to what is not there yet": outside,
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			b.begins("other", "m/d/b.txt")
			defer b.Commit("other")
			paths, changes := b.w.callPaths(b.w.Root(), path)
			if !changes {
				t.Fatal("the call is taken for one that changes nothing")
			}
			b.waits("w", paths...)
		})
	}
}

func TestCallPaths_AreThoseInTheWorkspace(t *testing.T) {
	b := newBound(t, Options{})
	for name, x := range map[string]struct {
		names, want []string
		changes     bool
	}{
		"none":               {nil, nil, true},
		"two":                {[]string{"a.txt", filepath.Join(b.w.Root(), "m/d/../new.txt")}, []string{"m/a.txt", "m/new.txt"}, true},
		"one elsewhere":      {[]string{"/elsewhere", "a.txt"}, []string{"m/a.txt"}, true},
		"all elsewhere":      {[]string{"/elsewhere", "../../x"}, nil, false},
		"one is not certain": {[]string{"a.txt", "~/x"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, changes := b.w.callPaths(filepath.Join(b.w.Root(), "m"), x.names...)
			if diff := cmp.Diff(x.want, got); diff != "" || changes != x.changes {
				t.Errorf("changes is %t, want %t; the paths (-want +got):\n%s", changes, x.changes, diff)
			}
		})
	}
}

func TestBegin_CancelledWaitLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	b := newBound(t, Options{})
	b.begins("first")
	b.waits("second")
	b.Commit("first")
	b.begins("third")
	if n := len(b.w.txs.turns.claims); n != 1 {
		t.Errorf("%d claims are left, want that of the third", n)
	}
}

func TestBegin_WithoutACheckpointFails(t *testing.T) {
	b := newBound(t, Options{Tree: TreeOptions{MaxDisk: 64 << 10}})
	b.begins("big")
	b.write("big", strings.Repeat("x", 1<<20)) // zeros might take no room
	b.Commit("big")
	if err := b.Begin(t.Context(), Call{ID: "next"}); err == nil {
		t.Error("the call has begun without a checkpoint")
	}
	must(t, os.Remove(filepath.Join(b.w.Root(), "big")))
	b.begins("after")
}

func TestKeepFailedShell_KeepsOnlyFilesOfCommands(t *testing.T) {
	b := newBound(t, Options{KeepFailedShell: true})
	must(t, b.Begin(t.Context(), Call{ID: "command", Shell: true}))
	b.write("m/a.txt", "kept")
	if text := b.fails("command"); text != "" {
		t.Errorf("the model receives %q, want nothing", text)
	}
	b.begins("write", "m/d/b.txt")
	b.write("m/d/b.txt", "x")
	b.fails("write")
	b.wants(map[string]string{"m/a.txt": "kept", "m/d/b.txt": "d/b.txt"})
	if len(b.emitted) != 1 || b.emitted[0].CallID != "write" {
		t.Errorf("emitted is %+v, want the rollback of the write", b.emitted)
	}
}

// A tool of this program runs another agent in its own workspace: that one's calls are part of its own.
func TestBegin_RunWithinACallIsPartOfIt(t *testing.T) {
	b := newBound(t, Options{})
	b.begins("outer")
	delegate := tool.Must("delegate", "Run another.", func(ctx context.Context, _ struct{}) (string, error) {
		inner := bindTo(ctx, t, b.w)
		defer inner.End()
		inner.begins("one")
		inner.waits("two")
		inner.write("kept-by-inner", "x")
		inner.Commit("one")
		inner.begins("two")
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

// A patch claims every file that it names, and all files if it cannot be read.
func TestCallOf_Patch(t *testing.T) {
	scan := func(input json.RawMessage) (paths []string, ok bool) {
		return paths, json.Unmarshal(input, &paths) == nil
	}
	patcher := &tool.Catalogue{Natives: []tool.Native{{
		Name: "amend", Risk: tool.Mutates, Needs: tool.FileWrite, Files: tool.WritesFile, Fields: tool.Fields{Scan: scan},
	}}}
	b := newBound(t, Options{})
	for input, want := range map[string][]string{`["a","m/b"]`: {"a", "m/b"}, `["a","/elsewhere"]`: {"a"}, `{}`: nil, `[]`: nil, `["a","~/b"]`: nil} {
		got, changes := b.w.CallOf(patcher, event.ToolCall{Name: "amend", Input: json.RawMessage(input), Dir: b.w.Root()}, nil)
		if diff := cmp.Diff(want, got.Paths); diff != "" || !changes {
			t.Errorf("%s: changes %t, paths (-want +got):\n%s", input, changes, diff)
		}
	}
}
