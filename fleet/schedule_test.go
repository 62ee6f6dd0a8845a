// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/ident"
)

// A clock is set by tests.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.at.Store(time.Date(2026, 11, 19, 10, 0, 30, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func hourly(name string) fleet.Schedule {
	return fleet.Schedule{Name: name, Agent: "asks", Request: json.RawMessage(`{"text": "Why?"}`), Cron: "0 * * * *"}
}

func putSchedule(t *testing.T, f *fleet.Fleet, s fleet.Schedule) {
	t.Helper()
	if err := f.PutSchedule(t.Context(), s); err != nil {
		t.Fatalf("PutSchedule = %v", err)
	}
}

func wantRuns(t *testing.T, f *fleet.Fleet, want int, when string) {
	t.Helper()
	n := 0
	for _, err := range f.Runs(t.Context()) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != want {
		t.Errorf("%s: %d runs, want %d", when, n, want)
	}
}

func TestSchedule_TickHasOneRun(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		clock := newClock()
		var all []*fleet.Fleet
		for range 4 {
			f := open(t)
			fleet.SetClock(f, clock.now, time.Hour)
			all = append(all, f)
		}
		fire := func() {
			t.Helper()
			var firing sync.WaitGroup
			for _, f := range all {
				firing.Go(func() {
					if err := fleet.FireDue(t.Context(), f); err != nil {
						t.Errorf("firing: %v", err)
					}
				})
			}
			firing.Wait()
		}
		f := all[0]
		putSchedule(t, f, hourly("report"))
		fire()
		wantRuns(t, f, 0, "before the first tick")
		for n := range 5 {
			clock.advance(time.Hour)
			fire()
			fire()
			wantRuns(t, f, n+1, "after a tick")
		}
		clock.advance(48 * time.Hour)
		fire()
		fire()
		wantRuns(t, f, 6, "after two days without a worker")
		clock.advance(-48 * time.Hour)
		fire()
		wantRuns(t, f, 6, "after the clock has gone back")
		clock.advance(-3 * time.Hour)
		fire()
		for range 3 {
			clock.advance(time.Hour)
			fire()
		}
		wantRuns(t, f, 6, "as the same hours come again")
		clock.advance(time.Hour)
		fire()
		wantRuns(t, f, 7, "at the first hour that is new")

		clock.advance(time.Hour)
		putSchedule(t, f, hourly("report"))
		fire()
		wantRuns(t, f, 8, "after the same schedule is put when a tick is due")
		clock.advance(time.Hour)
		if err := fleet.FireStale(t.Context(), f, 3); err != nil {
			t.Fatal(err)
		}
		wantRuns(t, f, 9, "after workers have died when they had fired")
		if err := f.RemoveSchedule(t.Context(), "report"); err != nil {
			t.Fatalf("RemoveSchedule = %v", err)
		}
		clock.advance(time.Hour)
		fire()
		wantRuns(t, f, 9, "after the schedule is removed")
	})
}

func TestSchedule_WorkerFires(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		clock, f := newClock(), open(t)
		fleet.SetClock(f, clock.now, 20*time.Millisecond)
		asked := make(chan string, 10)
		a := asks(nil, func(r *agenttest.Run) { asked <- r.Request.Prompt }, answers("ok"))
		work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}})
		s := hourly("report")
		s.Cron, s.TimeZone, s.Priority = "30 15 * * *", "Asia/Kolkata", fleet.High // 10:00 in UTC
		putSchedule(t, f, s)
		clock.advance(24 * time.Hour)
		select {
		case text := <-asked:
			if !strings.Contains(text, "Why?") {
				t.Errorf("the agent is asked %q", text)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the schedule is not fired")
		}
		for r, err := range f.Runs(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if result := wait(t, r); result.State != fleet.Succeeded {
				t.Errorf("the run ended with %+v", result)
			}
		}
		wantRuns(t, f, 1, "after the tick")
	})
}

func TestSchedule_PutListRemove(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	clock := newClock()
	fleet.SetClock(f, clock.now, time.Hour)
	for _, bad := range []func(*fleet.Schedule){
		func(s *fleet.Schedule) { s.Name = "a.b" }, func(s *fleet.Schedule) { s.Agent = "" }, func(s *fleet.Schedule) { s.Cron = "61 * * * *" },
		func(s *fleet.Schedule) { s.TimeZone = "Local" }, func(s *fleet.Schedule) { s.Priority = "urgent" },
		func(s *fleet.Schedule) { s.Request = json.RawMessage(`{`) }, func(s *fleet.Schedule) { s.Request = nil },
		func(s *fleet.Schedule) { s.Request = json.RawMessage(`"` + strings.Repeat("x", 300<<10) + `"`) },
	} {
		s := hourly("bad")
		bad(&s)
		if err := f.PutSchedule(t.Context(), s); err == nil {
			t.Errorf("PutSchedule(%.100v) = nil, want an error", s)
		}
	}
	putSchedule(t, f, hourly("one"))
	putSchedule(t, f, hourly("two"))
	changed := hourly("one")
	changed.Cron = "30 * * * *"
	putSchedule(t, f, changed)
	var names []string
	for s, err := range f.Schedules(t.Context()) {
		next, failed := s.Next(clock.now())
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		names = append(names, fmt.Sprint(s.Name, " ", next.Format(time.TimeOnly)))
	}
	if want := []string{"two 11:00:00", "one 10:30:00"}; !slices.Equal(names, want) {
		t.Errorf("the schedules are %q, want %q", names, want)
	}
	clock.advance(time.Hour)
	again := hourly("one") // other times: what was due before is not fired
	putSchedule(t, f, again)
	if err := f.RemoveSchedule(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	if err := fleet.FireDue(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	wantRuns(t, f, 0, "after the times have changed")
}

func TestSubmit_NotBefore(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		clock, f := newClock(), open(t)
		fleet.SetClock(f, clock.now, 20*time.Millisecond)
		at := clock.now().Add(100 * time.Millisecond) // of a clock that does not go on by itself
		later, err := f.Submit(t.Context(), "asks", question{"Later?"}, &fleet.SubmitOptions{NotBefore: at})
		if err != nil {
			t.Fatal(err)
		}
		var begun atomic.Int64
		work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{asks(nil, func(*agenttest.Run) { begun.Add(1) }, answers("ok"))}})
		for range 3 { // the worker has seen the earlier request, too
			wait(t, submit(t, f, "Why?", ""))
		}
		wantState(t, later, fleet.Queued)
		if got, err := later.NotBefore(t.Context()); err != nil || !got.Equal(at) || begun.Load() != 3 {
			t.Errorf("NotBefore() = %s, %v after %d runs, want %s", got, err, begun.Load(), at)
		}
		clock.advance(2 * time.Hour)
		if result := wait(t, later); result.State != fleet.Succeeded || result.Attempts != 1 {
			t.Errorf("the run ended with %+v", result)
		}
	})
}

// A worker takes of each level what it is promised.
func TestWorker_TakesByPriority(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		var all []*fleet.Run
		for p, n := range map[fleet.Priority]int{fleet.High: 22, "": 8, fleet.Low: 2} {
			for range n {
				r, err := f.Submit(t.Context(), "asks", question{"level=" + string(p)}, &fleet.SubmitOptions{Priority: p})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, r)
			}
		}
		var mu sync.Mutex
		var taken []string
		work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{asks(nil, func(r *agenttest.Run) {
			mu.Lock()
			defer mu.Unlock()
			_, level, _ := strings.Cut(r.Request.Prompt, "level=")
			taken = append(taken, strings.TrimSpace(level))
		}, answers("ok"))}})
		for _, r := range all {
			wait(t, r)
		}
		for half := range slices.Chunk(taken, 16) {
			share := map[string]int{}
			for _, level := range half {
				share[level]++
			}
			if share["high"] != 11 || share[""] != 4 || share["low"] != 1 {
				t.Errorf("16 requests in a row are %v, want 11 high, 4 normal and 1 low", share)
			}
		}
		if _, err := f.Submit(t.Context(), "asks", question{}, &fleet.SubmitOptions{Priority: "urgent"}); err == nil {
			t.Error("Submit with an unknown priority = nil, want an error")
		}
	})
}

// An idle worker waits for all levels at once. What it gets beyond its room goes back at once, and has lost no attempt.
func TestWorker_HandsBackWhatItHasNoRoomFor(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		release := make(chan struct{})
		blocks := fleet.Worker{Fleet: f, Agents: []fleet.Agent{asks(nil, func(r *agenttest.Run) {
			r.Yield(event.Event{Payload: event.Text{Content: "begun"}}, nil)
			if strings.Contains(r.Request.Prompt, "block") {
				<-release
			}
		}, answers("ok"))}}
		work(t, blocks)
		wait(t, submit(t, f, "Why?", "")) // the worker is idle soon
		first := submit(t, f, "block", "")
		for range first.Events(t.Context(), 0) {
			break // it has begun
		}
		var all []*fleet.Run
		for _, p := range []fleet.Priority{fleet.Low, fleet.Normal, fleet.High} {
			r, err := f.Submit(t.Context(), "asks", question{"Why?"}, &fleet.SubmitOptions{Priority: p})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		idle := fleet.Worker{Fleet: open(t), Agents: blocks.Agents}
		work(t, idle)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // a lease takes 30
		defer cancel()
		for _, r := range all {
			if result, err := r.Wait(ctx); err != nil || result.State != fleet.Succeeded || result.Attempts != 1 {
				t.Errorf("the run ended with %+v, %v", result, err)
			}
		}
		close(release)
		wait(t, first)
	})
}
