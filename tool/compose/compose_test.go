// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/event"
	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

type addend struct {
	N int `json:"n"`
}

// adder adds to n.
func adder(name string, by int, opts ...tool.Option) *tool.Tool {
	return tool.Must(name, "Adds to n.", func(_ context.Context, p addend) (addend, error) { return addend{p.N + by}, nil }, opts...)
}

// answering always gives the one answer.
func answering(name string, r tool.Result, opts ...tool.Option) *tool.Tool {
	return tool.Must(name, "Answers.", func(context.Context, addend) (tool.Result, error) { return r, nil }, opts...)
}

// failing always fails.
func failing(name string, err error, opts ...tool.Option) *tool.Tool {
	return tool.Must(name, "Fails.", func(context.Context, addend) (addend, error) { return addend{}, err }, opts...)
}

// waiting waits for the end of its context.
func waiting(name string) *tool.Tool {
	return tool.Must(name, "Waits.", func(ctx context.Context, _ addend) (addend, error) {
		<-ctx.Done()
		return addend{}, ctx.Err()
	})
}

func sound(t interface {
	Helper()
	Fatal(...any)
}, made *tool.Tool, err error,
) *tool.Tool {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func runComposed(t *tool.Tool, input string) tool.Result {
	return t.Run(context.Background(), tool.Call{ID: "call-1", Input: json.RawMessage(input)})
}

// overOne holds a composer of each kind over a single part, for what must hold for all of them.
var overOne = map[string]func(part *tool.Tool, opts ...tool.Option) (*tool.Tool, error){
	"pipe": func(p *tool.Tool, opts ...tool.Option) (*tool.Tool, error) {
		return compose.Pipe("pipe-"+p.Name, "A pipe.", []*tool.Tool{p}, opts...)
	},
	"parallel": func(p *tool.Tool, opts ...tool.Option) (*tool.Tool, error) {
		return compose.Parallel("parallel-"+p.Name, "All at once.", []*tool.Tool{p}, compose.ParallelOptions{}, opts...)
	},
	"collect": func(p *tool.Tool, opts ...tool.Option) (*tool.Tool, error) {
		return compose.Parallel("collect-"+p.Name, "All at once.", []*tool.Tool{p}, compose.ParallelOptions{Collect: true}, opts...)
	},
	"retry": func(p *tool.Tool, opts ...tool.Option) (*tool.Tool, error) {
		return compose.Retry(p, compose.RetryOptions{Attempts: 2}, opts...), nil
	},
	"bind": func(p *tool.Tool, opts ...tool.Option) (*tool.Tool, error) { return compose.Bind(p, nil, opts...) },
	"preprocess": func(p *tool.Tool, opts ...tool.Option) (*tool.Tool, error) {
		return compose.Preprocess(p, func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }, opts...), nil
	},
	"postprocess": func(p *tool.Tool, opts ...tool.Option) (*tool.Tool, error) {
		return compose.Postprocess(p, func(_ context.Context, r tool.Result) (tool.Result, error) { return r, nil }, opts...), nil
	},
	"cached": func(p *tool.Tool, opts ...tool.Option) (*tool.Tool, error) {
		return compose.Cached(p, compose.CacheOptions{CacheMutating: true}, opts...)
	},
	"rate limited": func(p *tool.Tool, opts ...tool.Option) (*tool.Tool, error) {
		return compose.RateLimited(p, compose.RateOptions{Calls: 100}, opts...), nil
	},
}

var composers = func() []string {
	var names []string
	for name := range overOne {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

func eachComposer(t *testing.T, test func(t *testing.T, compose func(*tool.Tool, ...tool.Option) (*tool.Tool, error))) {
	t.Helper()
	for _, name := range composers {
		t.Run(name, func(t *testing.T) { test(t, overOne[name]) })
	}
}

// declaredRisk is the risk that a tree of tools declares, computed from its leaves and options alone.
type declaredRisk struct {
	risk     tool.Risk
	needs    tool.Capability
	readOnly bool
}

func (s declaredRisk) want() tool.Risk {
	r := s.risk &^ tool.ReadOnly
	if s.readOnly && !r.Has(tool.Mutates) {
		r |= tool.ReadOnly
	}
	return r
}

func (s declaredRisk) plus(o declaredRisk) declaredRisk {
	return declaredRisk{s.risk | o.risk, s.needs | o.needs, s.readOnly && o.readOnly}
}

// A forest draws trees of tools whose leaves have different names.
type forest struct {
	*rapid.T
	leaves int
}

// statements are ways to declare a risk, true or not.
func (f *forest) statements() []tool.Option {
	all := []tool.Option{
		tool.ReadOnly, tool.Mutates, tool.Dangerous, tool.FileWrite, tool.ShellExecute, tool.NetworkAccess,
		tool.WithTags("readonly"), tool.WithTags("read-only"), tool.WithTags("mutating"), tool.WithTags("dangerous"), tool.WithTags("shell-execute"), tool.WithTags("files"),
		tool.WithMetadata(map[string]any{"readOnly": true}), tool.WithMetadata(map[string]any{"readOnly": false}),
		tool.WithMetadata(map[string]any{"mutates": true}), tool.WithMetadata(map[string]any{"mutates": false}),
		tool.WithMetadata(map[string]any{"dangerous": true}), tool.WithMetadata(map[string]any{"dangerous": false}),
		tool.WithMetadata(map[string]any{"capabilities": []string{"networkAccess"}}), tool.WithMetadata(map[string]any{"capabilities": []any{}}),
	}
	return rapid.SliceOfN(rapid.SampledFrom(all), 0, 3).Draw(f.T, "statements")
}

func (f *forest) leaf() (*tool.Tool, declaredRisk) {
	f.leaves++
	t := adder(fmt.Sprintf("leaf-%d", f.leaves), 1, f.statements()...)
	return t, declaredRisk{t.Risks(), t.Needs(), t.Risks().Has(tool.ReadOnly)}
}

func (f *forest) tree(depth int) (*tool.Tool, declaredRisk) {
	if depth == 0 || rapid.IntRange(0, 4).Draw(f.T, "leaf") == 0 {
		return f.leaf()
	}
	return f.node(depth)
}

// node draws a tool that is made of others.
func (f *forest) node(depth int) (*tool.Tool, declaredRisk) {
	opts := f.statements()
	alone := tool.Must("alone", "Only the options.", func(context.Context, addend) (addend, error) { return addend{}, nil }, opts...)
	all := declaredRisk{risk: alone.Risks() &^ tool.ReadOnly, needs: alone.Needs(), readOnly: true}
	n := rapid.IntRange(1, 3).Draw(f.T, "parts")
	var parts []*tool.Tool
	for range n {
		part, s := f.tree(depth - 1)
		parts, all = append(parts, part), all.plus(s)
	}
	f.leaves++
	name := fmt.Sprintf("node-%d", f.leaves)
	switch {
	case n == 1:
		kind := rapid.SampledFrom(composers).Draw(f.T, "kind")
		made, err := overOne[kind](parts[0], append(opts, tool.WithName(name, ""))...)
		return sound(f.T, made, err), all
	case rapid.Bool().Draw(f.T, "pipe"):
		made, err := compose.Pipe(name, "A pipe.", parts, opts...)
		return sound(f.T, made, err), all
	}
	made, err := compose.Parallel(name, "All at once.", parts, compose.ParallelOptions{}, opts...)
	return sound(f.T, made, err), all
}

func TestCompose_KeepsEveryRisk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &forest{T: rt}
		made, all := f.node(3)
		registered := tool.MustRegistry(nil, made).Tools()[0]
		for _, got := range []*tool.Tool{made, registered} {
			if got, want := got.Risks(), all.want(); got != want {
				rt.Fatalf("Risks() = %s, want %s", got, want)
			}
			if got, want := got.Needs(), all.needs; got != want {
				rt.Fatalf("Needs() = %s, want %s", got, want)
			}
			for tag, risk := range map[string]tool.Risk{"mutating": tool.Mutates, "readonly": tool.ReadOnly, "dangerous": tool.Dangerous} {
				if got, want := got.HasTag(tag), all.want().Has(risk); got != want {
					rt.Fatalf("HasTag(%q) = %t, want %t", tag, got, want)
				}
			}
		}
	})
}

func TestCompose_NoOptionLowersARisk(t *testing.T) {
	claims := map[string]tool.Option{
		"option": tool.ReadOnly, "tag": tool.WithTags("readonly"), "older tag": tool.WithTags("read-only"),
		"metadata": tool.WithMetadata(map[string]any{"readOnly": true, "mutates": false, "dangerous": false}),
		"list":     tool.WithMetadata(map[string]any{"capabilities": []string{}}),
	}
	parts := map[string]*tool.Tool{
		"nothing declared": adder("part", 1), "mutates": adder("part", 1, tool.Mutates), "mutates by a tag": adder("part", 1, tool.WithTags("mutating")),
		"dangerous by metadata": adder("part", 1, tool.WithMetadata(map[string]any{"dangerous": true, "capabilities": []string{"shellExecute"}})),
	}
	eachComposer(t, func(t *testing.T, compose func(*tool.Tool, ...tool.Option) (*tool.Tool, error)) {
		for by, claim := range claims {
			for name, part := range parts {
				whole, err := compose(part, claim)
				whole = sound(t, whole, err)
				if whole.Risks() != part.Risks() || whole.Needs() != part.Needs() {
					t.Errorf("%s, declared read-only by %s: %s, needs %s; want %s, needs %s",
						name, by, whole.Risks(), whole.Needs(), part.Risks(), part.Needs())
				}
			}
		}
	})
}

func TestCompose_KeepsTheStricterSettings(t *testing.T) {
	eachComposer(t, func(t *testing.T, compose func(*tool.Tool, ...tool.Option) (*tool.Tool, error)) {
		part := adder("add", 1, tool.WithHiddenValue(), tool.WithConcurrency(2), tool.WithTags("billing"))
		made, err := compose(part, tool.WithConcurrency(5))
		made = sound(t, made, err)
		if !made.HideValue {
			t.Error("HideValue = false, want that of the part")
		}
		if got, want := made.Concurrency, 2; got != want {
			t.Errorf("Concurrency = %d, want %d", got, want)
		}
		if stricter, err := compose(part, tool.WithConcurrency(1)); sound(t, stricter, err).Concurrency != 1 {
			t.Errorf("Concurrency = %d, want 1 as the option says", stricter.Concurrency)
		}
		if !made.HasTag("billing") {
			t.Errorf("Tags = %q, want billing among them", made.Tags)
		}
		r := runComposed(made, `{"n":1}`)
		if !r.OK() || !r.HideValue || r.Structured != nil {
			t.Errorf("result = %+v, want a success with a hidden value", r)
		}
		if got := r.Render(); strings.Contains(got, "2") {
			t.Errorf("the model reads %q, want nothing of the value", got)
		}
	})
}

func TestCompose_DoesNotChangeThePart(t *testing.T) {
	eachComposer(t, func(t *testing.T, compose func(*tool.Tool, ...tool.Option) (*tool.Tool, error)) {
		part := adder("add", 1, tool.WithTags("a"), tool.WithMetadata(map[string]any{"readOnly": true}))
		part.Tags = slices.Grow(part.Tags, 8)
		tags, metadata := slices.Clone(part.Tags[:8:8]), fmt.Sprint(part.Metadata)
		_, err := compose(part, tool.WithTags("b"), tool.WithMetadata(map[string]any{"c": 1}), tool.Mutates)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tags, part.Tags[:8]); diff != "" {
			t.Errorf("tags of the part (-before +after):\n%s", diff)
		}
		if got := fmt.Sprint(part.Metadata); got != metadata {
			t.Errorf("metadata of the part = %s, want %s", got, metadata)
		}
	})
}

func TestCompose_UnservedPartMakesTheWholeUnserved(t *testing.T) {
	eachComposer(t, func(t *testing.T, compose func(*tool.Tool, ...tool.Option) (*tool.Tool, error)) {
		made, err := compose(tool.Must[addend, addend]("declared", "Only declared.", nil))
		if sound(t, made, err).Served() {
			t.Error("Served() = true, want false")
		}
	})
}

var sessionKey = tool.NewKey[string]("session")

func TestCompose_PartRunsWithinTheCallOfTheWhole(t *testing.T) {
	eachComposer(t, func(t *testing.T, compose func(*tool.Tool, ...tool.Option) (*tool.Tool, error)) {
		synctest.Test(t, func(t *testing.T) {
			var got tool.Call
			var key string
			var left time.Duration
			part := tool.Must("part", "Looks around.", func(ctx context.Context, _ addend) (addend, error) {
				got, _ = tool.CallFrom(ctx)
				key, _ = sessionKey.From(ctx)
				deadline, _ := ctx.Deadline()
				left = time.Until(deadline)
				return addend{}, nil
			}, tool.WithTimeout(time.Hour))
			made, err := compose(part)
			made = sound(t, made, err)
			r := made.Run(sessionKey.With(t.Context(), "s-1"), tool.Call{ID: "call-7", AgentID: "a-2", Input: json.RawMessage(`{"n":1}`), Timeout: time.Minute})
			if !r.OK() {
				t.Fatalf("result: %s", r.Render())
			}
			if got.ID != "call-7" || got.AgentID != "a-2" || key != "s-1" {
				t.Errorf("the part saw call %q of agent %q in session %q, want those of the whole", got.ID, got.AgentID, key)
			}
			if r.CallID != "call-7" || r.Tool != made.Name {
				t.Errorf("result is of call %q of tool %q, want call-7 of %s", r.CallID, r.Tool, made.Name)
			}
			want := time.Minute
			if strings.Contains(t.Name(), "cached") {
				want = time.Hour // the run is not one caller's alone
			}
			if left != want {
				t.Errorf("the part had %s, want %s", left, want)
			}
		})
	})
}

func TestCompose_CancelledPartCancelsTheWhole(t *testing.T) {
	eachComposer(t, func(t *testing.T, compose func(*tool.Tool, ...tool.Option) (*tool.Tool, error)) {
		synctest.Test(t, func(t *testing.T) {
			made, err := compose(waiting("wait"))
			made = sound(t, made, err)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(errors.New("the user left")) })
			r := made.Run(ctx, tool.Call{ID: "1", Input: json.RawMessage(`{"n":1}`)})
			if r.Outcome != tool.Cancelled || !strings.Contains(r.Render(), "the user left") {
				t.Errorf("outcome %s: %q, want cancelled with the cause", r.Outcome, r.Render())
			}
		})
	})
}

func TestCompose_FailedPartFailsTheWhole(t *testing.T) {
	cause := errors.New("disk full")
	conflict := &tool.Error{Code: "LOCKED", Category: tool.CategoryConflict, Message: "It is locked.", RetryAfter: time.Second, Details: "d", Err: cause}
	cases := []struct {
		name string
		part *tool.Tool
		want tool.Outcome
		code string
	}{
		{"failed", failing("part", conflict), tool.Failed, "LOCKED"},
		{"denied", answering("part", tool.Result{Outcome: tool.Denied, Err: &tool.Error{Code: tool.CodeDenied, Category: tool.CategoryPermission, Message: "No."}}), tool.Denied, tool.CodeDenied},
		{"needs approval", answering("part", tool.Result{Outcome: tool.NeedsApproval, Action: &tool.Action{Type: "approval", Message: "Ask the owner."}}), tool.NeedsApproval, tool.CodeNeedsApproval},
		{"panic", tool.Must("part", "Panics.", func(context.Context, addend) (addend, error) { panic("oh") }), tool.Failed, tool.CodePanic},
		{"invalid arguments", adder("part", 1, tool.WithInput(schema.MustParse(`{"type":"object"}`))), tool.Failed, tool.CodeInvalidInput},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			eachComposer(t, func(t *testing.T, compose func(*tool.Tool, ...tool.Option) (*tool.Tool, error)) {
				input := `{"n":1}`
				if c.name == "invalid arguments" {
					input = `{"n":"one"}`
				}
				direct := runComposed(c.part, input)
				made, err := compose(c.part)
				r := runComposed(sound(t, made, err), input)
				if r.Outcome != c.want || r.Err == nil {
					t.Fatalf("outcome = %s with %v, want %s", r.Outcome, r.Err, c.want)
				}
				if r.Err.Code != c.code || r.Err.Category != direct.Err.Category || r.Err.Retryable != direct.Err.Retryable ||
					r.Err.RetryAfter != direct.Err.RetryAfter || r.Err.Details != direct.Err.Details {
					t.Errorf("error = %+v, want code, category, hint and details of %+v", r.Err, direct.Err)
				}
				if !strings.Contains(r.Err.Message, direct.Err.Message) {
					t.Errorf("message = %q, want %q in it", r.Err.Message, direct.Err.Message)
				}
				if (r.Action == nil) != (direct.Action == nil) {
					t.Errorf("action = %+v, want %+v", r.Action, direct.Action)
				}
				if c.name == "failed" && !errors.Is(r.Err, cause) {
					t.Errorf("errors.Is(%v, cause) = false, want true", r.Err)
				}
			})
		})
	}
}

func TestCompose_EventsAreThoseOfOneCall(t *testing.T) {
	whole, err := overOne["pipe"](failing("part", errors.New("oh")))
	made := sound(t, whole, err)
	r := runComposed(made, `{"n":1}`)
	got := r.Event()
	want := event.ToolResult{
		ID: "call-1", Name: "pipe-part", Status: event.ToolError, Duration: r.Duration, Output: json.RawMessage(`"Part part: Error: oh"`),
		Failure: &event.ToolFailure{Code: "FAILED", Category: "internal", Message: "Part part: Error: oh"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}
