// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

// counting counts its runs and takes a second for each.
func counting(runs *atomic.Int32, err error) *tool.Tool {
	return tool.Must("count", "Counts its runs.", func(ctx context.Context, p map[string]int) (addend, error) {
		runs.Add(1)
		select {
		case <-time.After(time.Second):
			return addend{int(runs.Load())}, err
		case <-ctx.Done():
			return addend{}, ctx.Err()
		}
	})
}

func cached(t *testing.T, part *tool.Tool, o compose.CacheOptions) *tool.Tool {
	t.Helper()
	c, err := compose.Cached(part, o)
	return sound(t, c, err)
}

func TestCache_AnswersEqualCalls(t *testing.T) {
	cases := []struct {
		name   string
		inputs []string
		opts   compose.CacheOptions
		err    error
		want   int32
	}{
		{"the same", []string{`{"a":1}`, `{"a":1}`}, compose.CacheOptions{}, nil, 1},
		{"the same in another order", []string{`{"a":1,"b":2}`, ` {"b":2, "a":1} `}, compose.CacheOptions{}, nil, 1},
		{"another", []string{`{"a":1}`, `{"a":2}`}, compose.CacheOptions{}, nil, 2},
		{"large numbers that a float cannot distinguish", []string{`{"a":9007199254740993}`, `{"a":9007199254740992}`}, compose.CacheOptions{}, nil, 2},
		{"before the end of their time", []string{`{}`, `{}`, `{}`}, compose.CacheOptions{TTL: time.Hour}, nil, 1},
		{"after the end of their time", []string{`{}`, `{}`, `{}`}, compose.CacheOptions{TTL: time.Minute}, nil, 3},
		{"failures", []string{`{}`, `{}`}, compose.CacheOptions{}, errors.New("oh"), 2},
		{"the one used last stays", []string{`{"a":1}`, `{"a":2}`, `{"a":1}`, `{"a":3}`, `{"a":1}`}, compose.CacheOptions{MaxEntries: 2}, nil, 3},
		{"the one not used goes", []string{`{"a":1}`, `{"a":2}`, `{"a":1}`, `{"a":3}`, `{"a":2}`}, compose.CacheOptions{MaxEntries: 2}, nil, 4},
		{"a key of one's own", []string{`{"a":1}`, `{"a":2}`}, compose.CacheOptions{Key: func(context.Context, json.RawMessage) string { return "k" }}, nil, 1},
		{"no key", []string{`{"a":1}`, `{"a":1}`}, compose.CacheOptions{Key: func(context.Context, json.RawMessage) string { return "" }}, nil, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int32
				made := cached(t, counting(&runs, c.err), c.opts)
				for i, input := range c.inputs {
					id := event.CallID(fmt.Sprint("call-", i))
					r := made.Run(t.Context(), tool.Call{ID: id, Input: json.RawMessage(input)})
					if r.OK() != (c.err == nil) || r.CallID != id {
						t.Errorf("%s: call %s: %s, want a success of %s", r.Outcome, r.CallID, r.Render(), id)
					}
					time.Sleep(time.Minute)
				}
				if got := runs.Load(); got != c.want {
					t.Errorf("%d runs, want %d", got, c.want)
				}
			})
		})
	}
}

func TestCache_ConcurrentEqualCallsRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		made := cached(t, counting(&runs, nil), compose.CacheOptions{})
		results := make([]tool.Result, 5)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() {
				results[i] = made.Run(t.Context(), tool.Call{ID: event.CallID(fmt.Sprint("call-", i)), Input: json.RawMessage(`{"a":1}`)})
			})
		}
		wg.Wait()
		for i, r := range results {
			if r.Render() != `{"n":1}` || string(r.CallID) != fmt.Sprint("call-", i) {
				t.Errorf("call %s: %s, want the result of the first run", r.CallID, r.Render())
			}
		}
		if got := runs.Load(); got != 1 {
			t.Errorf("%d runs, want 1", got)
		}
	})
}

func TestCache_CancelledCallerDoesNotEndTheRunOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		made := cached(t, counting(&runs, nil), compose.CacheOptions{})
		first := make(chan tool.Result, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		go func() { first <- made.Run(ctx, tool.Call{ID: "first"}) }()
		synctest.Wait()
		second := made.Run(t.Context(), tool.Call{ID: "second"})
		if r := <-first; r.Err == nil || r.Err.Code != tool.CodeTimeout {
			t.Errorf("first: %s, want a timeout", r.Render())
		}
		if !second.OK() || runs.Load() != 1 {
			t.Errorf("second: %s after %d runs, want a success of the first run", second.Render(), runs.Load())
		}
	})
}

func TestCache_RunWithoutCallersIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		made := cached(t, counting(&runs, nil), compose.CacheOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if r := made.Run(ctx, tool.Call{ID: "first"}); r.Outcome != tool.Cancelled {
			t.Errorf("first: %s, want cancelled", r.Outcome)
		}
		if r := made.Run(t.Context(), tool.Call{ID: "second"}); !r.OK() || runs.Load() != 2 {
			t.Errorf("second: %s after %d runs, want a success of a run of its own", r.Render(), runs.Load())
		}
	})
}

func TestCache_RunLosesTheCallWhenItsCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var during, after bool
		part := tool.Must("part", "Looks twice.", func(ctx context.Context, _ tool.None) (addend, error) {
			_, during = tool.CallFrom(ctx)
			time.Sleep(time.Second)
			_, after = tool.CallFrom(ctx)
			return addend{}, nil
		})
		made := cached(t, part, compose.CacheOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		go made.Run(ctx, tool.Call{ID: "first"})
		synctest.Wait()
		made.Run(t.Context(), tool.Call{ID: "second"})
		if diff := cmp.Diff([]bool{true, false}, []bool{during, after}); diff != "" {
			t.Errorf("knows the first call before and after its end (-want +got):\n%s", diff)
		}
	})
}

func TestCache_RefusesMutatingTools(t *testing.T) {
	cases := []struct {
		name    string
		risk    tool.Option
		opts    compose.CacheOptions
		refused bool
	}{
		{"read-only", tool.ReadOnly, compose.CacheOptions{}, false},
		{"mutates", tool.Mutates, compose.CacheOptions{}, true},
		{"mutates by a tag", tool.WithTags("mutating"), compose.CacheOptions{}, true},
		{"dangerous", tool.Dangerous, compose.CacheOptions{}, true},
		{"mutates, and is wanted", tool.Mutates, compose.CacheOptions{CacheMutating: true}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := compose.Cached(adder("add", 1, c.risk), c.opts)
			if (err != nil) != c.refused {
				t.Errorf("error = %v, want one: %t", err, c.refused)
			}
			if err != nil && !strings.Contains(advice.Text(err), "set CacheMutating") {
				t.Errorf("error = %v, want it to say what to do", err)
			}
		})
	}
}

func TestWrappers_DryRunsAreNeitherCachedNorLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dry := tool.WithDryRun(func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Text("would add"), nil })
		made := compose.RateLimited(cached(t, adder("add", 1, dry), compose.CacheOptions{}), compose.RateOptions{})
		for _, c := range []struct {
			dry  bool
			want string
		}{{true, "would add"}, {true, "would add"}, {false, `{"n":2}`}, {true, "would add"}} {
			r := made.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"n":1}`), DryRun: c.dry})
			if got := r.Render(); got != c.want {
				t.Errorf("dry run %t: %q, want %q", c.dry, got, c.want)
			}
		}
	})
}
