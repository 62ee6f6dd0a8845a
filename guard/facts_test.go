// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// A post is a gate that decides by a session, a tracker and a clock.
type post struct {
	*testing.T
	s      *session.Session
	engine *gate.Engine
	calls  int
}

func newPost(t *testing.T, o guard.FactsOptions, policies ...gate.Policy) *post {
	o.Session = session.New(nil)
	g := gate.Must(append(policies, gate.KnowsAgent(catalogue.Tools()), gate.Default(event.Allow))...)
	return &post{T: t, s: o.Session, engine: gate.NewEngine(g, &gate.EngineOptions{Facts: guard.Facts(o)})}
}

// want decides about a call, and looks for words in the reason of a denial; none means that the call is
// allowed.
func (p *post) want(words, name, input string) {
	p.Helper()
	p.calls++
	got := p.engine.Decide(p.Context(), event.ToolCall{ID: event.CallID(fmt.Sprint("call-", p.calls)), Name: name, Input: json.RawMessage(input)})
	if (got.Verdict == event.Allow) != (words == "") || !strings.Contains(got.Reason, words) {
		p.Errorf("%s %s: got %s %q, want %q", name, input, got.Verdict, got.Reason, words)
	}
}

func (p *post) dispatch(v any) {
	p.Helper()
	if _, err := p.s.Dispatch(p.Context(), v); err != nil {
		p.Fatal(err)
	}
}

func (p *post) record(ctx context.Context, name, input string, status event.ToolStatus) {
	p.Helper()
	p.calls++
	call := session.ToolInvoked{CallID: event.CallID(fmt.Sprint("call-", p.calls)), Name: name, Params: json.RawMessage(input), Status: status}
	if _, err := p.s.RecordTool(ctx, call, catalogue.Tools()); err != nil {
		p.Fatal(err)
	}
}

func TestFacts_LimitsFollowTheTrackerAndTheClock(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := guard.Clock(func() time.Time { return now })
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 100, MaxCostUSD: 1, Deadline: clock.FromNow(time.Hour)})
	p := newPost(t, guard.FactsOptions{Tracker: tracker, Deadline: clock.FromNow(2 * time.Hour)}, gate.Limits(gate.LimitOptions{}))
	p.want("", "Bash", `{}`)
	tracker.Record(guard.Usage{InputTokens: 99})
	p.want("", "Bash", `{}`)
	tracker.Record(guard.Usage{CostUSD: 1})
	p.want("Cost budget exhausted", "Bash", `{}`)
	tracker.Record(guard.Usage{OutputTokens: 1})
	p.want("Token budget exhausted", "Bash", `{}`)
	now = now.Add(time.Hour)
	p.want("Deadline exceeded", "Bash", `{}`)
}

func TestFacts_DeadlineAppliesWithoutATracker(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := guard.Clock(func() time.Time { return now })
	p := newPost(t, guard.FactsOptions{Deadline: clock.FromNow(time.Hour)}, gate.Limits(gate.LimitOptions{}))
	p.want("", "Bash", `{}`)
	now = now.Add(time.Hour)
	p.want("Deadline exceeded", "Bash", `{}`)
}

func TestFacts_BlockedToolsAreThoseOfTheLastPermissions(t *testing.T) {
	p := newPost(t, guard.FactsOptions{}, gate.Blocked())
	p.want("", "Bash", `{}`)
	p.dispatch(session.ToolPermissions{Blocked: []string{"Bash"}})
	p.want("Tool Bash blocked by session policy", "Bash", `{}`)
	p.want("", "Write", `{}`)
	before := p.s.Snapshot()
	p.dispatch(session.ToolPermissions{Allowed: []string{"Bash", "mcp__tracker__list"}})
	p.want("", "Bash", `{}`)
	p.want("", "mcp__tracker__list", `{}`)
	p.want("", "ToolSearch", `{}`)
	p.want("blocked by session policy", "Write", `{}`)
	p.want("blocked by session policy", "mcp__tracker__delete", `{}`)
	p.dispatch(session.ToolPermissions{Allowed: []string{"Write", "Edit"}})
	p.want("", "Write", `{}`)
	p.want("blocked by session policy", "Bash", `{}`)
	p.dispatch(session.ToolPermissions{Allowed: []string{"Bash"}, Blocked: []string{"Bash"}})
	p.want("Tool Bash blocked by session policy", "Bash", `{}`)
	if err := p.s.Restore(p.Context(), before); err != nil {
		t.Fatal(err)
	}
	p.want("Tool Bash blocked by session policy", "Bash", `{}`)
	p.want("", "Write", `{}`)
	p.dispatch(session.ToolPermissions{})
	p.want("", "Bash", `{}`)
}

func TestFacts_ToolsAreRequiredUntilTheySucceed(t *testing.T) {
	p := newPost(t, guard.FactsOptions{}, gate.RequireBefore(map[string][]string{"deploy": {"test", "mcp__ci__check"}}))
	p.record(t.Context(), "test", `{}`, event.ToolError)
	p.record(t.Context(), "mcp__other__test", `{}`, event.ToolSuccess) // of another server
	p.want("needs these tools to succeed first: mcp__ci__check, test", "deploy", `{}`)
	ctx, tx := p.s.Begin(t.Context(), "outer")
	p.record(ctx, "test", `{}`, event.ToolSuccess)
	p.record(t.Context(), "mcp__ci__check", `{}`, event.ToolSuccess)
	p.want("", "deploy", `{}`)
	if err := tx.Rollback("failed"); err != nil {
		t.Fatal(err)
	}
	p.want("needs these tools to succeed first: test", "deploy", `{}`)
	p.record(t.Context(), "test", `{}`, event.ToolSuccess)
	p.want("", "deploy", `{}`)
}

func TestFacts_FilesAreReadBeforeTheyAreWritten(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := newPost(t, guard.FactsOptions{}, gate.ReadBeforeWrite(gate.ReadBeforeWriteOptions{}))
	p.dispatch(session.Workspace{Root: root})
	p.want("has not been read", "Write", `{"file_path":"a.txt"}`)
	p.want("", "Write", `{"file_path":"new.txt"}`)
	p.record(t.Context(), "Write", `{"file_path":"new.txt"}`, event.ToolSuccess)
	if err := os.WriteFile(filepath.Join(root, "new.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.want("", "Edit", `{"file_path":"new.txt"}`) // who wrote it knows it
	p.record(t.Context(), "Read", `{"file_path":"b.txt"}`, event.ToolError)
	p.want("has not been read", "Edit", `{"file_path":"b.txt"}`)
	ctx, tx := p.s.Begin(t.Context(), "outer")
	p.record(ctx, "Read", `{"file_path":"a.txt"}`, event.ToolSuccess)
	p.want("", "Write", `{"file_path":"a.txt"}`)
	if err := tx.Rollback("failed"); err != nil {
		t.Fatal(err)
	}
	p.want("has not been read", "Write", `{"file_path":"a.txt"}`)
}

func TestFacts_CallLimitCoversConcurrentCallsAndSuccessiveRuns(t *testing.T) {
	s := session.New(nil)
	limits := gate.Must(gate.Limits(gate.LimitOptions{MaxCalls: 10}), gate.Default(event.Allow))
	for run, want := range []int{6, 4} {
		facts := guard.Facts(guard.FactsOptions{Session: s})
		engine := gate.NewEngine(limits, &gate.EngineOptions{Facts: facts})
		var allowed sync.Map
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				call := event.ToolCall{ID: event.CallID(fmt.Sprint(run, "-", i)), Name: "Bash"}
				if engine.Decide(context.Background(), call).Verdict == event.Allow {
					allowed.Store(call.ID, true)
				}
			})
		}
		wg.Wait()
		n := 0
		for id := range allowed.Range {
			n++
			if _, err := s.RecordTool(t.Context(), session.ToolInvoked{CallID: id.(event.CallID), Name: "Bash", Status: event.ToolSuccess}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if n != want {
			t.Errorf("run %d: %d of 6 calls are allowed, want %d", run, n, want)
		}
	}
}

// A call whose input a policy rewrites is asked about again, with the same number, and all is judged that
// would run.
// An id is no licence: what comes under it again with another input is another call.
func TestFacts_CallsUnderOneIDCountEach(t *testing.T) {
	g := gate.Must(gate.Limits(gate.LimitOptions{MaxCalls: 3}), gate.Default(event.Allow))
	engine := gate.NewEngine(g, &gate.EngineOptions{Facts: guard.Facts(guard.FactsOptions{})})
	allowed := 0
	for i, id := range []string{"a", "b", "b", "b", "a", "b"} {
		call := event.ToolCall{ID: event.CallID(id), Name: "Read", Input: fmt.Appendf(nil, `{"file_path":"/%d"}`, i)}
		if engine.Decide(t.Context(), call).Verdict == event.Allow {
			allowed++
		}
	}
	if allowed != 3 {
		t.Errorf("%d calls were allowed, want 3", allowed)
	}
}

func TestFacts_RewrittenInputIsJudgedByTheSameFacts(t *testing.T) {
	rewrite := gate.Custom("rewrite", func(*gate.Call, *gate.Facts) (event.Decision, bool) {
		return event.Decision{Verdict: event.Allow, Input: json.RawMessage(`{"file_path":"/secret"}`)}, true
	})
	var numbers []int
	watch := gate.Custom("watch", func(_ *gate.Call, f *gate.Facts) (event.Decision, bool) {
		numbers = append(numbers, f.Calls)
		return event.Decision{}, false
	})
	unseen := func(gate.Call, string) gate.Target { return gate.Target{} }
	p := newPost(t, guard.FactsOptions{Target: unseen}, rewrite, watch, gate.ReadBeforeWrite(gate.ReadBeforeWriteOptions{}))
	p.dispatch(session.ToolInvoked{CallID: "read", Name: "Read", Path: "/open", Status: event.ToolSuccess})
	p.want("", "Bash", `{}`)
	p.want("/secret has not been read", "Write", `{"file_path":"/open"}`)
	if last := slices.Max(numbers); last != 1 {
		t.Errorf("the two calls have the numbers %v", numbers)
	}
}

func TestFacts_EmptySourcesLimitNothing(t *testing.T) {
	facts := guard.Facts(guard.FactsOptions{})(t.Context(), gate.Call{})
	if facts.Now.IsZero() || !facts.Deadline.IsZero() || facts.Remaining != (gate.Remaining{}) || facts.Invoked != nil ||
		facts.ReadPaths != nil || facts.Blocked != nil || facts.Allowed != nil || facts.Dir != "" {
		t.Errorf("the facts are %+v", facts)
	}
}

// Facts are taken while tools of ours run in transactions, succeed and fail.
func TestFacts_AreSafeDuringTransactions(t *testing.T) {
	s := session.New(nil)
	facts := guard.Facts(guard.FactsOptions{Session: s, Tracker: guard.NewTracker(guard.Budget{MaxTotalTokens: 10})})
	step := tool.Must("step", "Steps.", func(_ context.Context, in struct{ Fail bool }) (string, error) {
		if in.Fail {
			return "", errors.New("failed")
		}
		return "", nil
	})
	g := gate.Must(gate.Blocked(), gate.RequireBefore(map[string][]string{"other": {"step"}}), gate.Default(event.Allow))
	tools := tool.MustRegistry(&tool.Options{
		Around: session.ToolTx(s, nil), Decider: gate.NewEngine(g, &gate.EngineOptions{Facts: facts}),
	}, step)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				if n%10 == 0 {
					_, _ = s.Dispatch(context.Background(), session.ToolPermissions{Blocked: []string{fmt.Sprint("tool", n)}})
				}
				tools.Execute(context.Background(), tool.Call{Name: "step", Input: json.RawMessage(fmt.Sprintf(`{"Fail":%v}`, (i+n)%2 == 0))})
			}
		})
	}
	wg.Wait()
	if got := facts(t.Context(), gate.Call{}); got.Calls != 400 || !got.Invoked["step"] {
		t.Errorf("after 400 calls the facts are %+v", got)
	}
}

func BenchmarkFacts(b *testing.B) {
	s := session.New(nil)
	if _, err := s.Dispatch(b.Context(), session.ToolPermissions{Blocked: []string{"Bash", "WebFetch"}}); err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		call := session.ToolInvoked{CallID: event.CallID(fmt.Sprint(i)), Name: "Read", Params: json.RawMessage(fmt.Sprintf(`{"file_path":"/work/%d"}`, i)), Status: event.ToolSuccess}
		if _, err := s.RecordTool(b.Context(), call, catalogue.Tools()); err != nil {
			b.Fatal(err)
		}
	}
	facts := guard.Facts(guard.FactsOptions{
		Session: s, Tracker: guard.NewTracker(guard.Budget{MaxTotalTokens: 10, Deadline: guard.FromNow(time.Hour)}),
		Target: func(gate.Call, string) gate.Target { return gate.Target{} }, // looks at no files
	})
	c := gate.Call{ToolCall: event.ToolCall{ID: "call", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}}
	b.ReportAllocs()
	for b.Loop() {
		facts(b.Context(), c)
	}
}

func ExampleFacts() {
	s := session.New(nil)
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 1000})
	engine := gate.NewEngine(
		gate.Must(gate.Limits(gate.LimitOptions{}), gate.Blocked(), gate.Default(event.Allow)),
		&gate.EngineOptions{Facts: guard.Facts(guard.FactsOptions{Session: s, Tracker: tracker})})
	decide := func(id, name string) {
		d := engine.Decide(context.Background(), event.ToolCall{ID: event.CallID(id), Name: name})
		fmt.Println(name, d.Verdict, d.Reason)
	}
	if _, err := s.Dispatch(context.Background(), session.ToolPermissions{Blocked: []string{"Bash"}}); err != nil {
		panic(err)
	}
	decide("1", "Bash")
	tracker.Record(guard.Usage{InputTokens: 900, OutputTokens: 100})
	decide("2", "Read")
	// Output:
	// Bash deny Tool Bash blocked by session policy
	// Read deny Token budget exhausted
}

// Engines that share one function share the count.
func TestFacts_EnginesShareTheCount(t *testing.T) {
	facts := guard.Facts(guard.FactsOptions{})
	allowed := 0
	for engine := range 2 {
		g := gate.Must(gate.Limits(gate.LimitOptions{MaxCalls: 3}), gate.Default(event.Allow))
		e := gate.NewEngine(g, &gate.EngineOptions{Facts: facts})
		for i := range 3 {
			call := event.ToolCall{Name: "Read", Input: fmt.Appendf(nil, `{"file_path":"/%d-%d"}`, engine, i)}
			if e.Decide(t.Context(), call).Verdict == event.Allow {
				allowed++
			}
		}
	}
	if allowed != 3 {
		t.Errorf("%d calls were allowed, want 3", allowed)
	}
}
