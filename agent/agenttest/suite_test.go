// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var missing = agent.Readiness{State: agent.StateMissing, Detail: "it is not in PATH", Repair: "install it"}

func TestAdapter_ScriptedPassesTheSuite(t *testing.T) {
	TestAdapter(t, Subject{
		New: func(*testing.T) agent.Adapter {
			return New(Emit(event.Text{Content: "a"}), UseTool(event.ToolCall{ID: "b", Name: "Bash"}, "ok"), Done("token"))
		},
		Missing: func(*testing.T) agent.Adapter { return &Adapter{Readiness: missing} },
		Request: agent.Request{Settings: agent.Settings{Dir: t.TempDir()}},
		Calls:   func(_ *testing.T, calls []event.ToolCall) agent.Adapter { return performing(performCall, calls) },
		Changes: invented,
	})
}

// performing is an agent that makes calls in a way.
func performing(way func(event.ToolCall) Step, calls []event.ToolCall) *Adapter {
	a := &Adapter{Tools: Tools()}
	for _, c := range calls {
		a.Steps = append(a.Steps, way(c))
	}
	a.Steps = append(a.Steps, Done(""))
	return a
}

// invented are the calls that make a file with the invented tools.
func invented(file string) []event.ToolCall {
	input := func(v any) json.RawMessage { raw, _ := json.Marshal(v); return raw }
	return []event.ToolCall{
		{Name: "inscribe", Input: input(map[string]any{"at": file, "text": "x"})},
		{Name: "amend", Input: input(map[string]any{"changes": []any{map[string]any{"at": file, "text": "x"}}})},
		{Name: "perform", Input: input(map[string]any{"line": "make " + file})},
	}
}

// The checks about tools find fault with agents that do not do their part.
func TestToolChecks_FindFault(t *testing.T) {
	unasked := func(c event.ToolCall) Step {
		return func(r *Run) { performCall(c)(&Run{Context: context.WithoutCancel(r.Context), yield: r.yield}) }
	}
	late := func(c event.ToolCall) Step { // makes the call also if the run was stopped meanwhile
		return func(r *Run) { decideQuietly(r, c); unasked(c)(r) }
	}
	believing := func(c event.ToolCall) Step { // takes everything but a denial for a permission
		return func(r *Run) {
			if d := decideQuietly(r, c); d.Verdict != event.Deny || d.Reason == "" {
				unasked(c)(r)
			}
		}
	}
	idle := func(event.ToolCall) Step { return func(*Run) {} }
	unlisted := func(a *Adapter) *Adapter { a.Tools = &tool.Catalogue{Agent: "scripted"}; return a }
	harmless := func(a *Adapter) *Adapter {
		a.Tools = &tool.Catalogue{Agent: "scripted", Natives: []tool.Native{{Name: "inscribe"}, {Name: "amend"}, {Name: "perform"}}}
		return a
	}
	none := func(a *Adapter) *Adapter { a.Tools = nil; return a }
	as := func(a *Adapter) *Adapter { return a }
	for _, c := range []struct {
		check string
		way   func(event.ToolCall) Step
		with  func(*Adapter) *Adapter
		want  string
	}{
		{"its tools change files where they are allowed", idle, as, "0 of 3 calls"},
		{"permissions that deny hold for every tool of its catalogue", unasked, as, "calls that are denied made files"},
		{"permissions that deny hold for every tool of its catalogue", performCall, unlisted, "does not list file writes"},
		{"permissions that deny hold for every tool of its catalogue", performCall, harmless, "does not list file writes"},
		{"permissions that deny hold for every tool of its catalogue", performCall, none, "want the tools of the agent"},
		{"a tool that its catalogue does not have is denied", unasked, as, "not in the catalogue made files"},
		{"a host that never answers leaves every call undone", late, as, "no host has allowed made files"},
		{"a host that answers nonsense leaves every call undone", believing, as, "no host has allowed made files"},
		{"a host that replaces an input by nonsense leaves every call undone", believing, as, "no host has allowed made files"},
		{"a host that is gone leaves every call undone", believing, as, "no host has allowed made files"},
		{"a host that is gone leaves every call undone", unasked, as, "was not asked"},
	} {
		t.Run(c.check+": "+c.want, func(t *testing.T) {
			s := Subject{
				Request: agent.Request{Settings: agent.Settings{Dir: t.TempDir()}}, Changes: invented,
				Calls: func(_ *testing.T, calls []event.ToolCall) agent.Adapter { return c.with(performing(c.way, calls)) },
			}
			at := slices.IndexFunc(toolChecks, func(x toolCheck) bool { return x.name == c.check })
			if err := toolChecks[at].check(t, s); err == nil || !strings.Contains(advice.Text(err), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// decideQuietly asks the host, and takes a panic for no answer.
func decideQuietly(r *Run, c event.ToolCall) (d event.Decision) {
	defer func() { _ = recover() }()
	return decide(r, c)
}

// The suite must be able to find fault.
func TestSuite_FindsEachFault(t *testing.T) {
	hello := Emit(event.Text{Content: "a"})
	unnamed := func(a agent.Adapter) agent.Adapter { return renamed{a, ""} }
	isDeaf := func(a agent.Adapter) agent.Adapter { return deaf{a} }
	isLax := func(a agent.Adapter) agent.Adapter { return lax{a} }
	same := func(a agent.Adapter) agent.Adapter { return a }
	cases := []struct {
		check   string
		adapter *Adapter
		as      func(agent.Adapter) agent.Adapter
		want    string
	}{
		{"it has one name", New(), unnamed, "want one name"},
		{"it is ready where its agent is", &Adapter{Readiness: missing}, same, "want a state in which it can be run"},
		{"its last event is done", New(hello), same, "had 1 events"},
		{"its last event is done", New(hello, hello), same, "the last event is a event.Text"},
		{"its last event is done", New(Done("")), same, "had 1 events"},
		{"its last event is done", New(hello, Fail(errors.New("broken"))), same, "the run failed: broken"},
		{"its last event is done", New(Obstinate(), hello, Done(""), hello), same, "something comes after the end"},
		{"its last event is done", New(Obstinate(), Fail(errors.New("broken")), Done("")), same, "something comes after the end"},
		{"its last event is done", New(EmitEvents(event.Event{})), same, "has no payload"},
		{"its last event is done", New(EmitEvents(event.Event{Seq: 1, Payload: event.Text{}})), same, "the runner's to give"},
		{"a break ends it", New(Obstinate(), hello, Sleep(time.Minute)), same, "did not end within 20s"},
		{"a break ends it", New(), same, "no events"},
		{"the end of the context ends it", New(Obstinate(), hello, Sleep(time.Minute)), same, "did not end within 20s"},
		{"the end of the context ends it", New(), same, "no events"},
		{"it does not begin when the context has ended", New(hello, Done("")), isDeaf, "want an error or an interrupted Done"},
		{"its runs do not disturb each other", New(hello, onlyOnce()), same, "the run failed"},
		{"it asks its host about every tool call", New(Emit(event.ToolCall{ID: "a"}, event.ToolResult{ID: "a", Status: event.ToolDenied}), Done("")), same, "was not asked"},
		{"it asks its host about every tool call", New(Decide(event.ToolCall{ID: "a"}), Emit(event.ToolResult{ID: "a", Status: event.ToolSuccess}), Done("")), same, "succeeded, though"},
		{"it asks its host about every tool call", New(Fail(errors.New("broken"))), same, "with a host failed: broken"},
		{"it refuses permissions that no host enforces", New(hello, Done("")), isLax, "had 2 events"},
		{"it can be made and asked where its agent is missing", New(), same, "want missing"},
		{"a run without the agent yields one error and no event", New(hello), same, "had 1 events"},
		{"a run without the agent yields one error and no event", New(Fail(errors.New("broken"))), same, "does not wrap"},
	}
	for _, c := range cases {
		t.Run(c.check+": "+c.want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := checkNamed(t, c.check)(t.Context(), c.as(c.adapter), Subject{Patience: 20 * time.Second})
				if err == nil || !strings.Contains(advice.Text(err), c.want) {
					t.Errorf("got %v, want %q in it", err, c.want)
				}
				time.Sleep(time.Hour) // for adapters that stay
			})
		})
	}
}

func checkNamed(t *testing.T, name string) func(context.Context, agent.Adapter, Subject) error {
	t.Helper()
	for _, c := range checks {
		if c.name == name {
			return c.check
		}
	}
	t.Fatalf("there is no check %q", name)
	return nil
}

type renamed struct {
	agent.Adapter
	name string
}

func (r renamed) Agent() string { return r.name }

// deaf never learns that the context has ended.
type deaf struct{ agent.Adapter }

func (d deaf) Run(_ context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	return d.Adapter.Run(context.Background(), req)
}

// lax does not look at permissions.
type lax struct{ agent.Adapter }

func (l lax) Run(ctx context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	req.Permissions = nil
	return l.Adapter.Run(ctx, req)
}

// onlyOnce fails in all runs but the first.
func onlyOnce() Step {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	return func(r *Run) {
		select {
		case <-first:
			r.Yield(event.New(event.Done{Status: event.DoneSuccess}), nil)
		default:
			r.Yield(event.Event{}, errors.New("another run is here"))
		}
	}
}

// collectRun reads a run of a script.
func collectRun(ctx context.Context, a *Adapter, req agent.Request) (kinds []event.Kind, err error) {
	for e, e2 := range a.Run(ctx, req) {
		if e2 != nil {
			return kinds, e2
		}
		kinds = append(kinds, e.Payload.EventKind())
	}
	return kinds, nil
}

func TestScript_StopsWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := func(*Run) { cancel() }
	kinds, err := collectRun(ctx, New(stop, Emit(event.Text{}), Done("")), agent.Request{})
	if err != nil || len(kinds) != 1 || kinds[0] != event.KindDone {
		t.Errorf("got %v and %v, want only a done", kinds, err)
	}
}

// A denied call says so in its result; without a host every call is allowed.
func TestUseTool_FollowsTheHost(t *testing.T) {
	call := event.ToolCall{ID: "a", Name: "Bash"}
	for _, c := range []struct {
		host agent.Host
		want event.ToolStatus
		text string
	}{
		{nil, event.ToolSuccess, `"files"`},
		{verdict(event.Allow), event.ToolSuccess, `"files"`},
		{verdict(event.Deny), event.ToolDenied, `"because"`},
	} {
		var got event.ToolResult
		for e := range New(UseTool(call, "files"), Done("")).Run(t.Context(), agent.Request{Host: c.host}) {
			if r, isResult := e.Payload.(event.ToolResult); isResult {
				got = r
			}
		}
		if got.Status != c.want || string(got.Output) != c.text {
			t.Errorf("host %v: %s with %s, want %s with %s", c.host, got.Status, got.Output, c.want, c.text)
		}
	}
}

type verdict event.Verdict

func (v verdict) Decide(context.Context, event.ToolCall) event.Decision {
	return event.Decision{Verdict: event.Verdict(v), Reason: "because"}
}
