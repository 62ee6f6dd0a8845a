// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

func TestCalls_EachIsRecordedOnce(t *testing.T) {
	const own = "mcp__drover__note"
	failed := func(id, name, text string) agenttest.Step {
		return agenttest.Emit(call(id, name, `{}`), event.ToolResult{ID: event.CallID(id), Name: name, Status: event.ToolError, Failure: &event.ToolFailure{Message: text}})
	}
	sub := call("s", "Bash", `{}`)
	sub.AgentID = "helper"
	for name, x := range map[string]struct {
		opts  drover.Options
		step  agenttest.Step
		want  string
		notes []string
	}{
		"success":                       {step: makes(call("1", "Bash", `{}`), `"out"`, ""), want: "1 Bash native success"},
		"failure":                       {step: makes(call("1", "Bash", `{}`), ``, "exit 1"), want: "1 Bash native error: exit 1"},
		"denied by the gate":            {opts: drover.Options{Settings: agent.Settings{DisallowedTools: []string{"Bash"}}}, step: makes(call("1", "Bash", `{}`), `""`, ""), want: "1 Bash native denied: Bash is denied. Make an allowed call instead, or continue without it."},
		"refused by the agent itself":   {step: failed("1", "Edit", "String to replace not found"), want: "1 Edit native error: String to replace not found"},
		"a tool that there is not":      {step: failed("1", "Nope", "No such tool"), want: "1 Nope native error: No such tool"},
		"never ended":                   {step: agenttest.Emit(call("1", "Bash", `{}`)), want: "1 Bash native cancelled: The turn ended before the call did."},
		"a subagent's":                  {step: makes(sub, `""`, ""), want: "s Bash native success of helper"},
		"another server's":              {step: makes(call("1", "mcp__x__y", `{}`), `""`, ""), want: "1 mcp__x__y bridged success"},
		"an answer":                     {step: makes(call("1", "StructuredOutput", `{}`), `""`, ""), want: "1 StructuredOutput native success"},
		"ours: success":                 {step: calls(call("1", own, `{"text":"a"}`)), want: "1 note bridged success", notes: []string{"a"}},
		"ours: failure":                 {step: calls(call("1", own, `{"text":"a","then":"fail"}`)), want: "1 note bridged error: Error: no ink"},
		"ours: panic":                   {step: calls(call("1", own, `{"text":"a","then":"panic"}`)), want: "1 note bridged error: Error: the tool panicked: no paper"},
		"ours: wrong arguments":         {step: calls(call("1", own, `{"text":1}`)), want: "1 note bridged error: Validation error: "},
		"ours: no such tool":            {step: calls(call("1", "mcp__drover__nope", `{}`)), want: `1 nope bridged error: There is no tool "nope". Call one of these: note.`},
		"ours: time out":                {opts: drover.Options{ToolTimeout: time.Millisecond}, step: calls(call("1", own, `{"text":"a","then":"wait"}`)), want: "1 note bridged error: "},
		"ours: denied by the gate":      {opts: drover.Options{Settings: agent.Settings{DisallowedTools: []string{own}}}, step: calls(call("1", own, `{"text":"a"}`)), want: "1 note bridged denied: mcp__drover__note is denied"},
		"ours: denied where it runs":    {opts: drover.Options{Settings: agent.Settings{DisallowedTools: []string{own}}}, step: unasked(call("1", own, `{"text":"a"}`)), want: "1 note bridged denied: "},
		"ours: approved and not denied": {opts: drover.Options{Policies: []gate.Policy{gate.AskTools("note")}}, step: calls(call("1", own, `{"text":"a"}`)), want: "1 note bridged denied: "},
	} {
		t.Run(name, func(t *testing.T) {
			x.opts.Session = session.New(nil)
			resp, err := play(t, &x.opts, x.step, answers())
			if err != nil {
				t.Fatal(err)
			}
			got := recorded(x.opts.Session)
			if len(got) != 1 || !strings.HasPrefix(got[0], x.want) {
				t.Errorf("recorded %q, want one of %q", got, x.want)
			}
			if diff := cmp.Diff(append([]string{}, x.notes...), kept(x.opts.Session)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if resp.Stats.ToolCalls != 1 {
				t.Errorf("%d calls are counted, want 1", resp.Stats.ToolCalls)
			}
		})
	}
}

// unasked is a call of one of our tools that the agent did not ask about.
func unasked(c event.ToolCall) agenttest.Step {
	return func(r *agenttest.Run) {
		host := r.Request.Host
		r.Request.Host = allowing{}
		calls(c)(r)
		r.Request.Host = host
	}
}

type allowing struct{}

func (allowing) Decide(context.Context, event.ToolCall) event.Decision {
	return event.Decision{Verdict: event.Allow}
}

// The context of the evaluation ends while one of our tools runs and while one of the agent's own does:
// the stream has no further event of either.
func TestCalls_OfACancelledEvaluationAreRecorded(t *testing.T) {
	s := session.New(nil)
	ctx, cancel := context.WithCancel(t.Context())
	steps := []agenttest.Step{
		agenttest.Emit(call("native", "Bash", `{"command":"sleep 9"}`)),
		agenttest.Decide(call("decided", "Read", `{"file_path":"/x"}`)),
		func(*agenttest.Run) { time.AfterFunc(20*time.Millisecond, cancel) },
		calls(call("own", "mcp__drover__note", `{"text":"a","then":"wait"}`)),
	}
	_, err := drover.Evaluate(ctx, agenttest.New(steps...), reviewPrompt(t), &drover.Options{Session: s})
	if !errors.Is(err, context.Canceled) && err == nil {
		t.Errorf("the error is %v", err)
	}
	want := []string{
		"decided Read native cancelled: The turn ended before the call did.",
		"native Bash native cancelled: The turn ended before the call did.",
	}
	got := recorded(s)
	if len(got) != 3 || !cmp.Equal(got[:2], want) || !strings.HasPrefix(got[2], "own note bridged cancelled") {
		t.Errorf("recorded %q", got)
	}
	if len(kept(s)) != 0 {
		t.Errorf("the notes %q are left", kept(s))
	}
}

// Some services number the calls of each answer from the beginning. A call under an id that is taken has a record of
// its own, and what became of the first one says nothing about it.
func TestCalls_AnIDThatComesAgainIsRecordedAgain(t *testing.T) {
	s := session.New(nil)
	if _, err := s.Dispatch(t.Context(), session.ToolPermissions{Blocked: []string{"Read"}}); err != nil {
		t.Fatal(err)
	}
	a := agenttest.New(
		makes(call("call_0", "Read", `{"file_path":"/x"}`), "", ""),
		makes(call("call_0", "Bash", `{"command":"a"}`), `"a"`, ""),
		makes(call("call_0", "Bash", `{"command":"a"}`), `"a"`, ""),
		calls(call("call_0", "mcp__drover__note", `{"text":"a"}`)),
		calls(call("call_0", "mcp__drover__note", `{"text":"a"}`)),
		answers())
	resp, err := drover.Evaluate(t.Context(), a, reviewPrompt(t), &drover.Options{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range recorded(s) {
		_, what, _ := strings.Cut(line, " ")
		what, _, _ = strings.Cut(what, ":")
		got = append(got, what)
	}
	slices.Sort(got)
	want := []string{"Bash native success", "Bash native success", "Read native denied", "note bridged success", "note bridged success"}
	if diff := cmp.Diff(want, got); diff != "" || resp.Summary.Stats.ToolCalls != len(want) {
		t.Errorf("%d calls were counted; recorded (-want +got):\n%s", resp.Summary.Stats.ToolCalls, diff)
	}
}

// An agent may end its turn without waiting for what it has called.
func TestTurn_EndsAfterTheToolsOfTheProgram(t *testing.T) {
	s, begun := session.New(nil), make(chan struct{})
	slow := tool.Must("slow", "Takes a while.", func(context.Context, tool.None) (string, error) {
		close(begun)
		time.Sleep(50 * time.Millisecond)
		return "done", nil
	})
	leaves := func(r *agenttest.Run) {
		go r.Request.Registry.Execute(r.Context, tool.Call{ID: "1", Name: "slow"})
		<-begun
		r.Yield(event.Event{Payload: event.ToolResult{ID: "1", Name: "mcp__drover__slow", Status: event.ToolError}}, nil)
	}
	p := reviewPrompt(t, prompt.Markdown("task", "Task", "Go.").With(slow))
	if _, err := drover.Evaluate(t.Context(), agenttest.New(leaves, answers()), p, &drover.Options{Session: s}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1 slow bridged success"}, recorded(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCalls_RecordHasToolAgentAndDuration(t *testing.T) {
	s := session.New(nil)
	c := call("1", "Write", `{"file_path":"/w/a.txt","content":"x"}`)
	c.Dir = "/w"
	if _, err := play(t, &drover.Options{Session: s, Settings: agent.Settings{Dir: t.TempDir()}}, makes(c, `{"filePath":"/w/a.txt"}`, ""), makes(call("2", "Bash", `{"command":"ls"}`), `{"stdout":"a\nb","stderr":""}`, ""), answers()); err != nil {
		t.Fatal(err)
	}
	calls := session.Query[session.ToolInvoked](s)
	first := calls.At(0)
	if first.Duration <= 0 || first.Path != "/w/a.txt" || first.Adapter != "scripted" || first.Prompt != "demo:review" || string(first.Params) != string(c.Input) || string(first.Value) != `{"filePath":"/w/a.txt"}` {
		t.Errorf("the record is %+v", first)
	}
	if got := calls.At(1).Output; got != "a\nb" {
		t.Errorf("the output of a command is kept as %q", got)
	}
	files, _ := session.Query[session.ModifiedFiles](s).Latest()
	if _, ok := files.Get("/w/a.txt"); !ok {
		t.Error("the file that was written is not known")
	}
}

func TestPlan_FollowsTheAgent(t *testing.T) {
	s := session.New(nil)
	todo := call("1", "TodoWrite", `{"todos":[{"content":"read","status":"in_progress","activeForm":"reading"}]}`)
	if _, err := play(t, &drover.Options{Session: s}, makes(todo, `{}`, ""), answers()); err != nil {
		t.Fatal(err)
	}
	plan, _ := session.Query[session.Plan](s).Latest()
	if step, ok := plan.Current(); !ok || step.Description != "read" {
		t.Errorf("the plan is %+v", plan)
	}
}

func TestSessionLog_HasEveryEventExceptDeltas(t *testing.T) {
	s := session.New(nil)
	at := func(turn int, p event.Payload) event.Event { return event.Event{Turn: turn, Payload: p} }
	var beats atomic.Int64
	heart := guard.NewHeartbeat(nil)
	heart.OnBeat(func() { beats.Add(1) })
	inner := at(7, event.Text{Content: "helper"})
	inner.AgentID = "helper"
	resp, err := play(t, &drover.Options{Session: s, Heartbeat: heart},
		agenttest.EmitEvents(at(1, event.TextDelta{Delta: "he"}), at(1, event.Text{Content: "hello"}), inner, at(2, event.Thinking{Summary: "hm"}), at(1, event.Text{Content: "late"})),
		makes(call("1", "Bash", `{}`), `""`, ""), answers())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[event.Kind]int{}
	for e := range s.Events() {
		kinds[e.Kind]++
		if e.Payload.EventKind() == event.KindText && e.RunID != resp.RunID {
			t.Errorf("an event of run %q, want %q", e.RunID, resp.RunID)
		}
	}
	for kind, want := range map[event.Kind]int{
		event.KindTextDelta: 0, event.KindText: 3, event.KindThinking: 1, event.KindToolUse: 1, event.KindToolResult: 1,
		event.KindDecision: 1, event.KindDone: 1, "tool:invoked": 1, "prompt:executed": 1,
	} {
		if kinds[kind] != want {
			t.Errorf("%d events of kind %s in the log, want %d", kinds[kind], kind, want)
		}
	}
	if resp.Turns != 2 {
		t.Errorf("%d model calls are counted, want 2: those of the main agent", resp.Turns)
	}
	if beats.Load() < 8 {
		t.Errorf("%d signs of life, want one with each event", beats.Load())
	}
}

func TestStream_DecisionsAreNextToTheirCalls(t *testing.T) {
	run := drover.Stream(t.Context(), agenttest.New(makes(call("1", "Bash", `{}`), `""`, ""), answers()), reviewPrompt(t), nil)
	var kinds []event.Kind
	for e, err := range run.Events() {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	want := []event.Kind{event.KindToolUse, event.KindDecision, event.KindToolResult, event.KindDone}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A fullStore takes so many records and no more.
type fullStore struct {
	*session.MemoryStore
	room int
}

var errFull = errors.New("the disk is full")

func (s *fullStore) Append(records []session.Record) error {
	if s.room -= len(records); s.room < 0 {
		return errFull
	}
	return s.MemoryStore.Append(records)
}

// Whatever it is that cannot be recorded first, the evaluation fails, and no call is made after it.
func TestEvaluate_FailsWhenItCannotBeRecorded(t *testing.T) {
	succeeded := false
	for room := range 40 {
		s, err := session.Open(&fullStore{session.NewMemoryStore(), room}, nil)
		if err != nil {
			continue // not even that
		}
		made := 0
		runs := func(id string) agenttest.Step {
			return func(r *agenttest.Run) {
				ask(r, call(id, "Bash", `{}`), func(c event.ToolCall) {
					made++
					makes(c, `""`, "")(r)
				})
			}
		}
		_, err = play(t, &drover.Options{Session: s}, runs("1"), runs("2"), runs("3"), answers())
		if err != nil && !errors.Is(err, errFull) {
			t.Errorf("room for %d: %v, want that the disk is full", room, err)
		}
		allowed := 0
		for e := range s.Events() {
			if e.Kind == event.KindDecision {
				allowed++
			}
		}
		if logged := len(recorded(s)); made > allowed || err != nil && made > logged+1 {
			t.Errorf("room for %d: %d calls were made, of which the log has %d decisions and %d ends", room, made, allowed, logged)
		}
		succeeded = succeeded || err == nil
	}
	if !succeeded {
		t.Error("it never succeeds")
	}
}

func TestTracker_CountsUsageOnce(t *testing.T) {
	usage := func(input, output int64) event.Done {
		tokens, err := event.NewTokens(event.CoverageComplete, event.TokenRecord{Tokens: event.TokenCount{Input: event.InputTokens{Total: input}, Output: event.OutputTokens{Total: output}}})
		if err != nil {
			t.Fatal(err)
		}
		return event.Done{Status: event.DoneSuccess, Output: json.RawMessage(noted), Usage: event.Usage{Tokens: tokens}}
	}
	counts := func(r *agenttest.Run) {
		for _, tracker := range r.Request.Trackers {
			tracker.Record(guard.Usage{InputTokens: 100, OutputTokens: 20})
		}
	}
	for name, steps := range map[string][]agenttest.Step{
		"by the agent's own count": {agenttest.Emit(usage(100, 20))},
		"by a gateway":             {counts, agenttest.Emit(usage(100, 20))},
	} {
		tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 1000})
		if _, err := play(t, &drover.Options{Tracker: tracker}, steps...); err != nil {
			t.Fatal(err)
		}
		if got := tracker.Consumed().TotalTokens(); got != 120 {
			t.Errorf("%s: %d tokens are counted, want 120", name, got)
		}
	}
}

// A shared tracker may have less left than the Budget of the options, or more: the Budget is not enforced beside it.
func TestTracker_HoldsInPlaceOfTheBudget(t *testing.T) {
	budget := &guard.Budget{MaxTotalTokens: 5}
	for name, tracker := range map[string]*guard.Tracker{"shared": guard.NewTracker(guard.Budget{MaxTotalTokens: 1000}), "none": nil} {
		var limits []guard.Budget
		look := func(r *agenttest.Run) {
			for _, limit := range r.Request.Limits() {
				if limit.Budget().MaxTotalTokens != 0 {
					limits = append(limits, limit.Budget())
				}
			}
		}
		if _, err := play(t, &drover.Options{Tracker: tracker, Settings: agent.Settings{Budget: budget}}, look, agenttest.Emit(event.Done{Status: event.DoneSuccess, Output: json.RawMessage(noted)})); err != nil {
			t.Fatal(err)
		}
		for _, limit := range limits {
			if shared := limit.MaxTotalTokens == 1000; shared != (tracker != nil) {
				t.Errorf("%s: the limits are %v", name, limits)
			}
		}
		if len(limits) == 0 {
			t.Errorf("%s: there are no limits", name)
		}
	}
}
