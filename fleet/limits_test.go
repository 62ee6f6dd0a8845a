// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

func setLimit(t *testing.T, f *fleet.Fleet, agent string, l fleet.Limit) {
	t.Helper()
	if err := f.SetLimit(t.Context(), agent, l); err != nil {
		t.Fatalf("SetLimit = %v", err)
	}
}

func spent(t *testing.T, f *fleet.Fleet, agent string, day time.Time) fleet.Spending {
	t.Helper()
	s, err := f.Spent(t.Context(), agent, day)
	if err != nil {
		t.Fatalf("Spent = %v", err)
	}
	return s
}

// settled waits until no run counts as under way: that is a moment after its end.
func settled(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	for range 1000 {
		n, err := fleet.UnderWay(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a run counts as under way for ever")
}

// spends is a step that consumes, as the gateway counts it.
func spends(u guard.Usage) agenttest.Step {
	return func(r *agenttest.Run) { r.Request.Trackers[0].Record(u) }
}

// Workers that reserve at once never have more than a limit in all, and each of both limits counts.
func TestLimit_IsKeptUnderConcurrency(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		clock := newClock()
		setLimit(t, f, "asks", fleet.Limit{DollarsPerDay: 4, DollarsPerAttempt: 1})
		setLimit(t, f, "", fleet.Limit{TokensPerDay: 1000, TokensPerAttempt: 100, Runs: 3})
		var working sync.WaitGroup
		var admitted, refused, now, nanos atomic.Int64
		for w := range 4 {
			f := open(t)
			fleet.SetClock(f, clock.now, time.Hour)
			working.Go(func() {
				for n := range 6 {
					r := submit(t, f, "Why?", fmt.Sprintf("%d %d", w, n))
					settle, reason, err := fleet.Admit(t.Context(), r)
					if err != nil {
						t.Errorf("admit: %v", err)
						return
					}
					if reason != "" {
						refused.Add(1)
						continue
					}
					admitted.Add(1)
					if now.Add(1) > 3 {
						t.Error("more than 3 runs are under way")
					}
					s, all := spent(t, f, "asks", clock.now()), spent(t, f, "", clock.now())
					if s.Dollars+s.ReservedDollars > 4.000001 || all.Tokens+all.ReservedTokens > 1000 {
						t.Errorf("the limits are exceeded: %+v, %+v", s, all)
					}
					used := 0.3 + 0.1*float64(n)
					nanos.Add(int64(math.Round(used * 1e9)))
					now.Add(-1)
					if err := settle(guard.Usage{CostUSD: used, InputTokens: 40, OutputTokens: 2}); err != nil {
						t.Errorf("settle: %v", err)
					}
				}
			})
		}
		working.Wait()
		s, all := spent(t, f, "asks", clock.now()), spent(t, f, "", clock.now())
		want := fleet.Spending{Dollars: float64(nanos.Load()) / 1e9, Tokens: 42 * admitted.Load()}
		if s != want || all != want {
			t.Errorf("%d attempts have spent %+v, the fleet %+v, want %+v", admitted.Load(), s, all, want)
		}
		if admitted.Load() < 4 || refused.Load() == 0 {
			t.Errorf("%d attempts were admitted and %d refused", admitted.Load(), refused.Load())
		}
	})
}

// What does not fit into the day waits, with the reason, until the next day or a higher limit.
func TestLimit_RunsWaitForTheNextDayOrAHigherLimit(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		clock, f := newClock(), open(t)
		fleet.SetClock(f, clock.now, 20*time.Millisecond)
		setLimit(t, f, "asks", fleet.Limit{DollarsPerDay: 1, DollarsPerAttempt: 0.25})
		var all []*fleet.Run
		for n := range 10 {
			all = append(all, submit(t, f, "Why?", fmt.Sprint(n)))
		}
		work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{asks(nil, spends(guard.Usage{CostUSD: 0.2, OutputTokens: 7}), answers("ok"))}})
		ended := func(want int, when string) {
			t.Helper()
			for _, r := range all[:want] {
				if result := wait(t, r); result.State != fleet.Succeeded {
					t.Errorf("%s: the run ended with %+v", when, result)
				}
			}
			settled(t, f)
			for _, r := range all[want:] {
				wantState(t, r, fleet.Queued)
				if reason, err := r.Waiting(t.Context()); err != nil || !strings.Contains(reason, "the limit of agent asks: $0.8 of $1 on "+clock.now().Format(time.DateOnly)) {
					t.Errorf("%s: the run waits because of %q, %v", when, reason, err)
				}
			}
			if s := spent(t, f, "asks", clock.now()); s.ReservedDollars != 0 || s.Tokens%28 != 0 {
				t.Errorf("%s: %+v", when, s)
			}
		}
		ended(4, "on the first day")
		clock.advance(24 * time.Hour)
		ended(8, "on the second day")
		setLimit(t, f, "asks", fleet.Limit{DollarsPerDay: 2, DollarsPerAttempt: 0.25})
		wait(t, all[8])
		wait(t, all[9])
		settled(t, f)
		if s := spent(t, f, "", clock.now()); s.Dollars != 1.2 {
			t.Errorf("the fleet has spent %+v on the second day, want $1.2", s)
		}
	})
}

// An attempt ends at what it has reserved. What it spent beyond that counts.
func TestLimit_AttemptEndsAtItsReservation(t *testing.T) {
	f, clock := openOn(t, "embedded", "t"+ident.NewUUID()), newClock()
	fleet.SetClock(f, clock.now, time.Hour)
	setLimit(t, f, "asks", fleet.Limit{DollarsPerDay: 1, TokensPerDay: 5000})
	var budget atomic.Value
	work(t, fleet.Worker{Fleet: f, Attempts: 1, Agents: []fleet.Agent{asks(nil, func(r *agenttest.Run) {
		budget.Store(r.Request.Trackers[0].Budget())
		r.Request.Trackers[0].Record(guard.Usage{CostUSD: 0.15})
		r.Yield(event.Event{}, r.Request.Trackers[0].Check()) // as an adapter does
	})}})
	if result := wait(t, submit(t, f, "Why?", "")); result.State != fleet.Dead || !strings.Contains(result.Reason, "MaxCostUSD") {
		t.Errorf("the run ended with %+v, want it dead at its budget", result)
	}
	if b, _ := budget.Load().(guard.Budget); b.MaxCostUSD != 0.1 || b.MaxTotalTokens != 500 {
		t.Errorf("the attempt has the budget %+v, want a tenth of the day", b)
	}
	settled(t, f)
	if s := spent(t, f, "asks", clock.now()); s.Dollars != 0.15 || s.ReservedDollars != 0 {
		t.Errorf("after the attempt: %+v", s)
	}
}

// An agent with a tracker of its own could spend past the limit. It is refused.
func TestLimit_OwnTrackerIsRefused(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	setLimit(t, f, "", fleet.Limit{TokensPerDay: 5000})
	a := fleet.Handle("asks", fleet.Handler[question, string]{
		Adapter: agenttest.New(answers("ok")),
		Prepare: func(_ context.Context, q question, _ *session.Session) (*prompt.Prompt[string], *drover.Options, error) {
			p, err := prompt.FromText[string](q.Text)
			return p, &drover.Options{Tracker: guard.NewTracker(guard.Budget{})}, err
		},
	})
	work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}})
	if result := wait(t, submit(t, f, "Why?", "")); result.State != fleet.Dead || !strings.Contains(result.Reason, "Tracker") {
		t.Errorf("the run ended with %+v, want it dead because of its tracker", result)
	}
}

// The limit of runs holds on all workers. A run whose worker has died counts until another worker goes on with it, and its
// reservation counts as spent.
func TestLimit_RunsUnderWay(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		clock, opened := newClock(), open
		open = func(t *testing.T) *fleet.Fleet {
			f := opened(t)
			fleet.SetClock(f, clock.now, time.Second)
			return f
		}
		dying, begun := open(t), make(chan struct{}, 2)
		setLimit(t, dying, "asks", fleet.Limit{Runs: 2, TokensPerDay: 1000, TokensPerAttempt: 10})
		work(t, fleet.Worker{Fleet: dying, Lease: time.Second, Concurrency: 2, Agents: []fleet.Agent{asks(nil, func(r *agenttest.Run) {
			begun <- struct{}{}
			agenttest.Block()(r)
		})}})
		var all []*fleet.Run
		f := open(t)
		for n := range 8 {
			all = append(all, submit(t, f, "Why?", fmt.Sprint(n)))
		}
		<-begun
		<-begun
		if reason, err := all[7].Waiting(t.Context()); err != nil || !strings.Contains(reason, "2 of 2 runs are under way") {
			t.Errorf("a run waits because of %q, %v", reason, err)
		}
		var now, most atomic.Int64
		a := asks(nil, func(r *agenttest.Run) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(20 * time.Millisecond)
			now.Add(-1)
			spends(guard.Usage{OutputTokens: 3})(r)
		}, answers("ok"))
		for range 2 {
			work(t, fleet.Worker{Fleet: open(t), Lease: time.Second, Concurrency: 3, Agents: []fleet.Agent{a}})
		}
		_ = dying.Close()
		for _, r := range all {
			r, err := f.Run(t.Context(), r.ID())
			if err != nil {
				t.Fatal(err)
			}
			if result := wait(t, r); result.State != fleet.Succeeded {
				t.Errorf("the run ended with %+v", result)
			}
		}
		settled(t, f)
		if got := most.Load(); got > 2 {
			t.Errorf("%d runs were under way at once, want up to 2", got)
		}
		if s := spent(t, f, "asks", clock.now()); s.Tokens != 8*3 || s.ReservedTokens != 2*10 {
			t.Errorf("after the runs: %+v, want 24 tokens and 20 of the dead attempts", s)
		}
	})
}

func TestSetLimit_RefusesWhatLimitsNothing(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	for _, bad := range []fleet.Limit{
		{DollarsPerDay: -1}, {DollarsPerDay: math.NaN()}, {DollarsPerDay: math.Inf(1)}, {Runs: -1}, {TokensPerDay: -5}, {DollarsPerDay: 1, DollarsPerAttempt: 2}, {TokensPerAttempt: 1},
	} {
		if err := f.SetLimit(t.Context(), "asks", bad); err == nil {
			t.Errorf("SetLimit(%+v) = nil, want an error", bad)
		}
	}
	if err := f.SetLimit(t.Context(), "a.b", fleet.Limit{Runs: 1}); err == nil {
		t.Error("SetLimit of a name with a dot = nil, want an error")
	}
	setLimit(t, f, "asks", fleet.Limit{Runs: 2})
	setLimit(t, f, "", fleet.Limit{DollarsPerDay: 5})
	setLimit(t, f, "asks", fleet.Limit{})
	limits, err := f.Limits(t.Context())
	if err != nil || len(limits) != 1 || limits[""].DollarsPerDay != 5 {
		t.Errorf("Limits() = %+v, %v", limits, err)
	}
}
