// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/tool"
)

type numbers struct {
	A int `json:"a"`
	B int `json:"b"`
}

// sum is the simplest tool there is.
func sum(opts ...tool.Option) *tool.Tool {
	return tool.Must("sum", "adds two numbers", func(_ context.Context, n numbers) (int, error) { return n.A + n.B, nil }, opts...)
}

// named is a tool that answers with its own name.
func named(name string, opts ...tool.Option) *tool.Tool {
	return tool.Must(name, "says "+name, func(context.Context, tool.None) (string, error) { return name, nil }, opts...)
}

func names(tools []*tool.Tool) []string {
	out := []string{}
	for _, t := range tools {
		out = append(out, t.ID())
	}
	return out
}

func TestRegistry_HasItsTools(t *testing.T) {
	r := tool.MustRegistry(nil, named("a"), named("b"))
	changes := 0
	stop := r.Watch(func() { changes++ })

	if err := r.Add(named("c"), named("a")); !errors.Is(err, tool.ErrDuplicate) || !strings.Contains(advice.Text(err), "default:a") {
		t.Errorf("adding a twice: %v, want ErrDuplicate that names default:a", err)
	}
	if diff := cmp.Diff([]string{"default:a", "default:b"}, names(r.Tools())); diff != "" {
		t.Errorf("a refused Add changed the tools (-want +got):\n%s", diff)
	}
	if err := r.Replace(named("a", tool.Mutates), named("c", tool.WithID("x", "2"))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"default:a", "default:b", "x:c@2"}, names(r.Tools())); diff != "" {
		t.Errorf("after Replace (-want +got):\n%s", diff)
	}
	if a, _ := r.Lookup("a"); a.Risks() != tool.Mutates {
		t.Errorf("the replaced tool has risk %s, want mutates", a.Risks())
	}
	if n := r.Remove("b", "x:c@2", "nothing"); n != 2 {
		t.Errorf("Remove removed %d tools, want 2", n)
	}
	if changes != 2 {
		t.Errorf("the watcher was called %d times, want once for each of two changes", changes)
	}
	stop()
	r.Remove("a")
	if changes != 2 {
		t.Error("the watcher was called after stop")
	}
}

func TestRegistry_LookupByNameFindsTheLastAndByIDTheExact(t *testing.T) {
	r := tool.MustRegistry(nil, named("read", tool.WithID("one", "")), named("read", tool.WithID("two", "1.0")))
	for name, want := range map[string]string{"read": "two:read@1.0", "one:read": "one:read", "two:read@1.0": "two:read@1.0", "two:read": "", "Read": ""} {
		got := ""
		if found, ok := r.Lookup(name); ok {
			got = found.ID()
		}
		if got != want {
			t.Errorf("Lookup(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestRegistry_RegisteredToolCannotBeChanged(t *testing.T) {
	mine := named("a", tool.Mutates)
	r := tool.MustRegistry(nil, mine)
	mine.Risk, mine.Tags = tool.ReadOnly, nil
	if a, _ := r.Lookup("a"); a.Risks() != tool.Mutates {
		t.Errorf("the registered tool has risk %s, want mutates", a.Risks())
	}
}

func TestRegistry_AddNamesEveryProblem(t *testing.T) {
	_, err := tool.NewRegistry(nil, nil, &tool.Tool{Name: "no spaces please"}, named("good"))
	if err == nil {
		t.Fatal("NewRegistry took wrong tools")
	}
	for _, want := range []string{"Invalid tool input: tools[0] is nil", "Name must be 1 to 64", "Description is empty"} {
		if !strings.Contains(advice.Text(err), want) {
			t.Errorf("the error %q lacks %q", err, want)
		}
	}
}

func TestRegistry_IsSafeForConcurrentUse(t *testing.T) {
	r := tool.MustRegistry(nil, sum())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := string(rune('a' + i))
			for range 50 {
				if err := r.Replace(named(name)); err != nil {
					t.Error(err)
				}
				if got := r.Execute(t.Context(), tool.Call{Name: "sum", Input: []byte(`{"a":1,"b":2}`)}); got.Render() != "3" {
					t.Errorf("sum gave %q", got.Render())
				}
				r.Remove(name)
			}
		})
	}
	wg.Wait()
}

func TestRegistry_NegativeLimitsAreErrors(t *testing.T) {
	for field, opts := range map[string]tool.Options{
		"Budget.MaxCalls": {Budget: tool.Budget{MaxCalls: -1}}, "Budget.MaxDuration": {Budget: tool.Budget{MaxDuration: -1}}, "Concurrency": {Concurrency: -1}, "Timeout": {Timeout: -1},
	} {
		if _, err := tool.NewRegistry(&opts); err == nil || !strings.Contains(advice.Text(err), "Options."+field+" is negative") {
			t.Errorf("%s: got %v, want an error that names it", field, err)
		}
	}
}

// panicking is a log handler that fails.
type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("no disk") }

func TestRegistry_PanickingLogHandlerDoesNotEndACall(t *testing.T) {
	log := slog.New(panicking{slog.DiscardHandler})
	speaks := doing(func(ctx context.Context) (tool.Result, error) {
		tool.Logger(ctx).Info("hello")
		return tool.OK("done"), nil
	})
	r := tool.MustRegistry(&tool.Options{Logger: log, After: []tool.After{func(context.Context, *tool.Tool, tool.Call, tool.Result) error { return errors.New("no") }}}, speaks)
	if got := r.Execute(t.Context(), tool.Call{Name: "doing"}); !got.OK() {
		t.Errorf("got %+v, want a success", got)
	}
}

// A registry that several servers follow does not make one wait for the other.
func TestRegistry_WatchersRunConcurrently(t *testing.T) {
	r := tool.MustRegistry(nil)
	var here atomic.Int32
	all := make(chan struct{})
	for range 3 {
		defer r.Watch(func() {
			if here.Add(1) == 3 {
				close(all)
			}
			<-all
		})()
	}
	if err := r.Add(named("a")); err != nil {
		t.Fatal(err)
	}
	if here.Load() != 3 {
		t.Errorf("%d of 3 had run when the change returned", here.Load())
	}
}
