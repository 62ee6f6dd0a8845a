// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/testkit"
)

func TestNewRunner_ErrorNamesTheReason(t *testing.T) {
	good := agenttest.New()
	cases := []struct {
		name     string
		adapter  agent.Adapter
		defaults agent.Request
		want     string
	}{
		{"no adapter", nil, agent.Request{}, "needs an adapter"},
		{"an adapter without a name", nameless{good}, agent.Request{}, "has no name"},
		{"a token for every run", good, agent.Request{Resume: "t"}, "Defaults cannot have Resume"},
		{"always fresh", good, agent.Request{Fresh: true}, "Defaults cannot have Resume, Fork, Fresh"},
		{"always another", good, agent.Request{Fork: true}, "Defaults cannot have Resume, Fork, Fresh"},
		{"one host for every run", good, agent.Request{Host: gate.NewEngine(nil, nil)}, "Defaults cannot have Resume, Fork, Fresh, Host, Ledger or LastSeq"},
		{"the number of an event", good, agent.Request{LastSeq: 1}, "Ledger or LastSeq"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := agent.NewRunner(c.adapter, &agent.RunnerOptions{Defaults: c.defaults})
			if err == nil || !strings.Contains(advice.Text(err), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

type nameless struct{ *agenttest.Adapter }

func (nameless) Agent() string { return "" }

// A refused run yields one error and no event, never reaches the adapter, and leaves the runner free.
func TestRunner_RefusedRunYieldsOneError(t *testing.T) {
	host := gate.NewEngine(nil, nil)
	cases := []struct {
		name string
		opts agent.RunnerOptions
		req  agent.Request
		want string
	}{
		{"host and permissions", agent.RunnerOptions{}, agent.Request{Host: host, Settings: agent.Settings{Permissions: &gate.Permissions{}}}, "cannot have Permissions"},
		{"host and permissions of the defaults", agent.RunnerOptions{Defaults: agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}}}, agent.Request{Host: host}, "cannot have Permissions"},
		{"host and policies", agent.RunnerOptions{Policies: []gate.Policy{gate.DenyTools("Bash")}}, agent.Request{Host: host}, "cannot have Permissions or Policies"},
		{"host and a list with arguments", agent.RunnerOptions{}, agent.Request{Host: host, Settings: agent.Settings{Tools: []string{"Read", "Bash(git status)"}}}, "cannot have Tools with arguments"},
		{"an invalid mode", agent.RunnerOptions{}, agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{Mode: "yolo"}}}, `invalid Mode "yolo"`},
		{"an invalid list", agent.RunnerOptions{}, agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}, Tools: []string{"Bash("}}}, "permissions of the run"},
		{"resume and fresh", agent.RunnerOptions{}, agent.Request{Resume: "t", Fresh: true}, "both Resume and Fresh"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := agenttest.New(agenttest.Done(""))
			r := newRunner(t, a, &c.opts)
			var errs []error
			for e, err := range r.Run(t.Context(), c.req) {
				if e.Payload != nil {
					t.Errorf("got a %s, want only an error", e.Kind)
				}
				errs = append(errs, err)
			}
			if len(errs) != 1 || !strings.Contains(advice.Text(errs[0]), c.want) {
				t.Errorf("got %v, want one error with %q", errs, c.want)
			}
			if len(a.Requests()) != 0 {
				t.Error("the adapter was run")
			}
			for _, err := range r.Run(t.Context(), c.req) {
				if errors.Is(err, agent.ErrBusy) {
					t.Error("the runner is busy afterwards")
				}
			}
		})
	}
}

func TestRunner_OneRunAtATime(t *testing.T) {
	r := scripted(t, agenttest.Emit(text("a")), agenttest.Done(""))
	lazy := r.Run(t.Context(), agent.Request{}) // nothing runs before the loop
	for range r.Run(t.Context(), agent.Request{}) {
		if done, err := agent.Wait(lazy); !errors.Is(err, agent.ErrBusy) {
			t.Errorf("a second run gave %+v and %v, want ErrBusy", done, err)
		}
	}
	expect(t, collect(t, lazy), "text done:success")
	expect(t, collect(t, lazy), "text done:success") // each loop is a run
}

func TestRunner_OfConcurrentRunsOneIsAccepted(t *testing.T) {
	a := &watched{Adapter: agenttest.New(agenttest.Emit(text("a")), agenttest.Block())}
	r := newRunner(t, a, nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	busy := 0
	for range 20 {
		all.Go(func() {
			for _, err := range r.Run(t.Context(), agent.Request{}) {
				mu.Lock()
				if errors.Is(err, agent.ErrBusy) {
					busy++
				}
				mu.Unlock()
				if n := a.running.Load(); n > 1 {
					t.Errorf("%d runs are under way", n)
				}
				break
			}
		})
	}
	all.Wait()
	if int(a.begun.Load())+busy != 20 {
		t.Errorf("%d runs and %d refusals, want 20 in all", a.begun.Load(), busy)
	}
}

// What the next run resumes, after runs and requests of all kinds.
func TestRunner_ContinuesTheLastConversation(t *testing.T) {
	type step struct {
		req    agent.Request
		end    agenttest.Step // the end of the run
		resume string         // what the adapter is given
		kept   string         // what the runner remembers then
	}
	done, fail := agenttest.Done, agenttest.Fail(errBroken)
	cases := []struct {
		name  string
		steps []step
	}{
		{"each run goes on where the last ended", []step{{agent.Request{}, done("a"), "", "a"}, {agent.Request{}, done("b"), "a", "b"}, {agent.Request{}, done("c"), "b", "c"}}},
		{"a request may name another", []step{{agent.Request{}, done("a"), "", "a"}, {agent.Request{Resume: "x"}, done("y"), "x", "y"}, {agent.Request{}, done("z"), "y", "z"}}},
		{"or begin a new one", []step{{agent.Request{}, done("a"), "", "a"}, {agent.Request{Fresh: true}, done("b"), "", "b"}, {agent.Request{}, done("c"), "b", "c"}}},
		{"a done without a token forgets", []step{{agent.Request{}, done("a"), "", "a"}, {agent.Request{}, done(""), "a", ""}, {agent.Request{}, done("b"), "", "b"}}},
		{"so does a failure", []step{{agent.Request{}, done("a"), "", "a"}, {agent.Request{}, fail, "a", ""}}},
		{"so does an end without done", []step{{agent.Request{}, done("a"), "", "a"}, {agent.Request{}, agenttest.Emit(), "a", ""}}},
		{"a limit keeps it", []step{{agent.Request{}, agenttest.Emit(event.Done{Status: event.DoneMaxTurns, ResumeToken: "m"}), "", "m"}}},
		{"a failed done may keep it", []step{{agent.Request{}, agenttest.Emit(event.Done{Status: event.DoneError, ResumeToken: "e"}), "", "e"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := agenttest.New()
			r := newRunner(t, a, nil)
			for i, s := range c.steps {
				a.Steps = []agenttest.Step{s.end}
				collect(t, r.Run(t.Context(), s.req))
				if got := a.Requests()[i].Resume; got != s.resume {
					t.Errorf("run %d resumes %q, want %q", i+1, got, s.resume)
				}
				if got := r.ResumeToken(); got != s.kept {
					t.Errorf("after run %d the runner remembers %q, want %q", i+1, got, s.kept)
				}
			}
		})
	}
}

// The clock and the ids can be given, so that a stream is the same each time.
func TestRunnerOptions_ClockAndIDs(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	opts := agent.RunnerOptions{
		Now:      func() time.Time { at = at.Add(time.Second); return at },
		NewRunID: func() string { return "run-1" },
	}
	events := collect(t, newRunner(t, agenttest.New(agenttest.Emit(text("a"))), &opts).Run(t.Context(), agent.Request{}))
	for _, e := range events {
		if e.RunID != "run-1" || e.Time.Year() != 2026 || e.Time.Month() != 3 {
			t.Errorf("%s is of run %q at %v", e.Kind, e.RunID, e.Time)
		}
	}
	if got := doneOf(events).Duration; got != 3*time.Second {
		t.Errorf("the duration is %v, want it by the given clock: 3s", got)
	}
}

func TestRunner_RunsHaveDifferentIDs(t *testing.T) {
	r := scripted(t, agenttest.Done(""))
	first, second := collect(t, r.Run(t.Context(), agent.Request{})), collect(t, r.Run(t.Context(), agent.Request{}))
	if first[0].RunID == second[0].RunID {
		t.Errorf("both runs are %q", first[0].RunID)
	}
}

// The agent and the time that an adapter sets are kept; number, run and role are the runner's alone.
func TestRunner_SetsNumberRunAndRoleOfEvents(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	forged := event.Event{Kind: "wrong", Agent: "sub-agent", Time: at, RunID: "forged", Seq: 99, Position: event.Position{Entry: 9}, Role: "boss", Payload: text("a")}
	events := collect(t, scripted(t, agenttest.EmitEvents(forged), agenttest.Done("")).Run(t.Context(), agent.Request{}))
	want := event.Event{Kind: event.KindText, Agent: "sub-agent", Time: at, RunID: events[1].RunID, Seq: 1, Role: role, Payload: text("a")}
	if diff := cmp.Diff(want, events[0]); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

// Many runners at once, each with tool calls that are asked about, leave nothing behind.
func TestRunner_HundredParallelRunsLeakNothing(t *testing.T) {
	n := testkit.Size(100, 2000)
	script := append(recording(), agenttest.UseTool(call("last", "Read"), "ok"), agenttest.Done("t"))
	a := &watched{Adapter: agenttest.New(script...)}
	var all sync.WaitGroup
	for range n {
		r := newRunner(t, a, &agent.RunnerOptions{Defaults: agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}}})
		all.Go(func() {
			if events := collect(t, r.Run(t.Context(), agent.Request{})); len(events) != len(recorded)+4 {
				t.Errorf("got %d events, want %d", len(events), len(recorded)+4)
			}
		})
	}
	all.Wait()
	if a.begun.Load() != int64(n) || a.running.Load() != 0 {
		t.Errorf("%d runs, %d of them go on; want %d and none", a.begun.Load(), a.running.Load(), n)
	}
}

// A runner that had to leave an adapter behind can be used again; the one left behind does not affect the next run.
func TestRunner_LateAdapterDoesNotAffectTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := agenttest.New(agenttest.Obstinate(), agenttest.Done("first"), agenttest.Sleep(time.Minute), agenttest.Emit(text("late")), agenttest.Done("late"))
		r := newRunner(t, a, &agent.RunnerOptions{CloseTimeout: time.Second})
		collect(t, r.Run(t.Context(), agent.Request{}))
		a.Steps = []agenttest.Step{agenttest.Sleep(time.Hour), agenttest.Done("second")}
		expect(t, collect(t, r.Run(t.Context(), agent.Request{})), "done:success")
		if got := r.ResumeToken(); got != "second" {
			t.Errorf("the runner remembers %q, want second", got)
		}
	})
}
