// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/tool"
)

type spoilInput struct {
	Name string `json:"name"`
	How  string `json:"how,omitzero"`
}

// spoil writes a file and ends as its input asks.
func spoil(ctx context.Context, in spoilInput) (string, error) {
	w, _ := From(ctx)
	if err := os.WriteFile(filepath.Join(w.Root(), in.Name), []byte("x"), 0o644); err != nil {
		return "", err
	}
	switch in.How {
	case "error":
		return "", errors.New("it went wrong")
	case "panic":
		panic("no")
	case "exit":
		runtime.Goexit()
	case "wait":
		<-ctx.Done()
		return "", ctx.Err()
	}
	return "done", nil
}

func TestToolTx_FailedToolLeavesNoFiles(t *testing.T) {
	for _, how := range []string{"error", "panic", "exit", "wait", "cancel", "dry run", ""} {
		for _, hooked := range []bool{false, true} {
			name := how
			if hooked {
				name += " in a bound run"
			}
			t.Run(name, func(t *testing.T) {
				b := newBound(t, Options{})
				one := tool.Must("spoil", "Write and fail.", spoil)
				one.Timeout = 30 * time.Millisecond
				one.DryRun = one.Handler
				if how == "cancel" {
					one.Timeout = 0
				}
				registry := tool.MustRegistry(&tool.Options{Around: ToolTx(b.w, nil)}, one)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				call := tool.Call{ID: "c", Name: "spoil", Input: []byte(`{"name":"new.txt","how":"` + how + `"}`), DryRun: how == "dry run"}
				if how == "cancel" {
					call.Input = []byte(`{"name":"new.txt","how":"wait"}`)
					time.AfterFunc(20*time.Millisecond, cancel)
				}
				if hooked {
					b.begins("c")
				}
				result := registry.Execute(ctx, call)
				succeeds := how == "" || how == "dry run"
				if result.OK() != succeeds {
					t.Errorf("the result is %q", result.Render())
				}
				if named := strings.Contains(result.Render(), "new.txt"); named == succeeds {
					t.Errorf("the model reads %q", result.Render())
				}
				want := ""
				if how == "" {
					want = "x"
				}
				b.wants(map[string]string{"new.txt": want})
				if hooked {
					b.fails("c")
				}
				b.begins("next")
			})
		}
	}
}

// An agent may call a tool of this program without the id of the call, or under the tool's own name.
func TestToolTx_CallWithoutAnIDJoinsTheOneOfItsTool(t *testing.T) {
	for full, call := range map[string]tool.Call{"mcp__own__spoil": {Name: "spoil"}, "spoil": {Name: "spoil"}, "other": {Name: "spoil", As: "other"}} {
		t.Run(full, func(t *testing.T) {
			b := newBound(t, Options{})
			must(t, b.Begin(t.Context(), Call{ID: "c", Tool: full}))
			registry := tool.MustRegistry(&tool.Options{Around: ToolTx(b.w, nil)}, tool.Must("spoil", "Write and fail.", spoil))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			call.Input = []byte(`{"name":"new.txt","how":"error"}`)
			if result := registry.Execute(ctx, call); !strings.Contains(result.Render(), "new.txt") {
				t.Errorf("the model reads %q", result.Render())
			}
			b.wants(map[string]string{"new.txt": ""})
		})
	}
}

// A tool has others called at the same time: what one that fails has changed goes, what the others have
// done stays.
func TestToolTx_InnerCallsTakeTurns(t *testing.T) {
	b := newBound(t, Options{})
	one := tool.Must("spoil", "Write and fail.", spoil)
	var registry *tool.Registry
	many := tool.Must("many", "Call others.", func(ctx context.Context, _ struct{}) (string, error) {
		var wg sync.WaitGroup
		for _, in := range []string{`{"name":"1"}`, `{"name":"2","how":"error"}`, `{"name":"3"}`, `{"name":"4","how":"error"}`} {
			wg.Go(func() { registry.Execute(ctx, tool.Call{Name: "spoil", Input: []byte(in)}) })
		}
		wg.Wait()
		return "done", nil
	})
	registry = tool.MustRegistry(&tool.Options{Around: ToolTx(b.w, nil)}, one, many)
	for range 10 {
		if result := registry.Execute(t.Context(), tool.Call{Name: "many"}); !result.OK() {
			t.Fatal(result.Render())
		}
		b.wants(map[string]string{"1": "x", "2": "", "3": "x", "4": ""})
	}
}

// A part that outlives its call must not bring back what that has given up.
func TestTx_InnerTransactionThatOutlivesItsCallChangesNothing(t *testing.T) {
	b := newBound(t, Options{})
	ctx, whole, err := b.w.Begin(t.Context(), Call{ID: "whole", Tool: "t"})
	must(t, err)
	b.write("m/a.txt", "half")
	in, part, err := b.w.Begin(ctx, Call{ID: "part", Tool: "t"})
	must(t, err)
	_, err = whole.Rollback(t.Context())
	must(t, err)
	_, other, err := b.w.Begin(t.Context(), Call{ID: "other", Tool: "t"})
	must(t, err)
	b.write("other.txt", "x")
	if _, err := part.Rollback(t.Context()); err == nil {
		t.Error("the part was rolled back after the whole")
	}
	b.wants(map[string]string{"m/a.txt": "a.txt", "other.txt": "x"})
	late, cancel := context.WithTimeout(in, 50*time.Millisecond)
	defer cancel()
	if _, _, err := b.w.Begin(late, Call{ID: "late", Tool: "t"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call in the context of what is over got its turn beside the other: %v", err)
	}
	other.Commit()
}

func TestBegin_ClosedWorkspaceRefusesCalls(t *testing.T) {
	b := newBound(t, Options{})
	b.begins("open")
	must(t, b.w.Close())
	if text := b.fails("open"); !strings.Contains(text, "could not be rolled back") {
		t.Errorf("the model reads %q", text)
	}
	for _, paths := range [][]string{{"m/a.txt"}, nil} {
		if err := b.Begin(t.Context(), Call{ID: "next", Paths: paths}); err == nil {
			t.Errorf("a call for %q has begun", paths)
		}
	}
}
