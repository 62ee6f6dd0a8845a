// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/session"
)

func prune(t *testing.T, f *fleet.Fleet, keep fleet.Retention, want int) {
	t.Helper()
	if n, err := f.Prune(t.Context(), keep); n != want || err != nil {
		t.Errorf("Prune = %d, %v, want %d runs removed", n, err, want)
	}
}

// What has ended goes, with its objects; what is queued, delayed or running stays, and so does what is young.
func TestPrune_RemovesWhatHasEnded(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		large := strings.Repeat("x", 300<<10)
		release, begun := make(chan struct{}), make(chan struct{})
		stop := work(t, fleet.Worker{Fleet: f, Attempts: 1, Concurrency: 2, Agents: []fleet.Agent{asks(nil, func(r *agenttest.Run) {
			switch {
			case strings.Contains(r.Request.Prompt, "block"):
				close(begun)
				<-release
			case strings.Contains(r.Request.Prompt, "fail"):
				r.Yield(event.Event{}, errors.New("no"))
			}
		}, agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: large}))}})
		succeeded, dead := submit(t, f, "Why? "+large, "one"), submit(t, f, "fail", "")
		wait(t, succeeded)
		wait(t, dead)
		cancelled, err := f.Submit(t.Context(), "other", question{large}, nil)
		if err == nil {
			err = cancelled.Cancel(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		running := submit(t, f, "block", "block")
		<-begun
		queued, err := f.Submit(t.Context(), "other", question{large}, nil)
		if err != nil {
			t.Fatal(err)
		}
		delayed, err := f.Submit(t.Context(), "asks", question{"Later?"}, &fleet.SubmitOptions{NotBefore: time.Now().Add(100 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if err := fleet.PutOrphan(t.Context(), f, "asks.lost."+ident.NewUUID()); err != nil {
			t.Fatal(err)
		}
		prune(t, f, fleet.Retention{}, 0)
		prune(t, f, fleet.Retention{Age: time.Hour}, 0)
		fleet.SetClock(f, func() time.Time { return time.Now().Add(2 * time.Hour) }, time.Hour)
		late, err := fleet.RequestOf(t.Context(), succeeded)
		if err != nil {
			t.Fatal(err)
		}
		if err := fleet.MarkRemoved(t.Context(), dead); err != nil { // by a process that died then
			t.Fatal(err)
		}
		if err := running.Remove(t.Context()); !errors.Is(err, fleet.ErrNotEnded) {
			t.Errorf("Remove of a running run = %v, want ErrNotEnded", err)
		}
		prune(t, f, fleet.Retention{Age: time.Hour}, 3)
		prune(t, f, fleet.Retention{Age: time.Hour}, 0)
		for _, r := range []*fleet.Run{succeeded, dead, cancelled} {
			if _, err := f.Run(t.Context(), r.ID()); !errors.Is(err, fleet.ErrNoRun) {
				t.Errorf("Run of a removed run = %v, want ErrNoRun", err)
			}
			_, state := r.State(t.Context())
			_, waited := r.Wait(t.Context())
			for what, err := range map[string]error{"State": state, "Wait": waited, "Retry": r.Retry(t.Context()), "Remove": r.Remove(t.Context())} {
				if !errors.Is(err, fleet.ErrNoRun) {
					t.Errorf("%s of a removed run = %v, want ErrNoRun", what, err)
				}
			}
			if err := r.Cancel(t.Context()); err != nil {
				t.Errorf("Cancel of a removed run = %v", err)
			}
			if _, messages, err := fleet.Kept(t.Context(), f, r); messages != 1 || err != nil {
				t.Errorf("%d messages of a removed run are kept, %v, want the mark", messages, err)
			}
		}
		if _, err := fleet.OpenLogFor(t.Context(), f, succeeded.ID(), late); !errors.Is(err, fleet.ErrEnded) {
			t.Errorf("a late delivery of a removed run opens its log: %v", err)
		}
		objects, _, err := fleet.Kept(t.Context(), f, queued)
		if err != nil || len(objects) != 2 || !slices.ContainsFunc(objects, func(o string) bool { return strings.HasPrefix(o, queued.ID()) }) {
			t.Errorf("the objects are %q, %v, want that of the queued run, and the young one", objects, err)
		}
		wantState(t, queued, fleet.Queued)
		wantState(t, delayed, fleet.Queued)
		wantState(t, running, fleet.Running)
		close(release)
		if result := wait(t, running); result.State != fleet.Succeeded {
			t.Errorf("the running run ended with %+v", result)
		}
		if err := fleet.MarkRemoved(t.Context(), running); err != nil {
			t.Fatal(err)
		}
		if r := submit(t, f, "fail", "block"); wait(t, r).State != fleet.Dead { // under the key of a run whose removal was interrupted
			t.Error("a request under the key of a removed run has its old answer")
		}
		again := submit(t, f, "How?", "one") // another request under the key, which is free
		if again.ID() != succeeded.ID() {
			t.Errorf("the key has the run %s, then %s", succeeded.ID(), again.ID())
		}
		if result := wait(t, again); result.State != fleet.Succeeded || result.Attempts != 1 {
			t.Errorf("the run that was submitted again ended with %+v", result)
		}
		stop()
		next, stopEvents := iter.Pull2(again.Events(t.Context(), 0))
		defer stopEvents()
		if record, err, ok := next(); !ok || err != nil || record.Pos != 1 {
			t.Errorf("the run that was submitted again has the first event %+v, %v", record, err)
		}
	})
}

func TestPrune_KeepsTheLastRunsOfAnAgent(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	stop := work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{asks(nil, answers("ok"))}})
	var all []*fleet.Run
	for n := range 5 {
		all = append(all, submit(t, f, "Why?", fmt.Sprint(n)))
		wait(t, all[n])
	}
	stop()
	prune(t, f, fleet.Retention{Runs: 2}, 3)
	for n, r := range all {
		if _, err := f.Run(t.Context(), r.ID()); (err == nil) != (n >= 3) {
			t.Errorf("Run of run %d = %v", n, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := fleet.Worker{Fleet: f, Agents: []fleet.Agent{asks(nil, answers("ok"))}, Retention: fleet.Retention{Runs: 1}}
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for range 1000 {
		if _, err := f.Run(ctx, all[3].ID()); errors.Is(err, fleet.ErrNoRun) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	<-done
	wantRuns(t, f, 1, "after a worker with a retention")
}

// An object that no message refers to goes when it is old. Those of a log that is no run stay.
func TestPrune_RemovesOrphans(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	l, err := f.OpenLog(t.Context(), "review.42", "me")
	if err == nil {
		err = l.Init(session.Head{Version: session.EncodingVersion, ID: "review.42"})
	}
	if err == nil {
		err = l.Append([]session.Record{{Pos: 1, Data: json.RawMessage(`"` + strings.Repeat("x", 300<<10) + `"`)}})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"asks.lost." + ident.NewUUID(), "asks.lost.content.abc", "review.42.content.abc", "other"} {
		if err := fleet.PutOrphan(t.Context(), f, name); err != nil {
			t.Fatal(err)
		}
	}
	prune(t, f, fleet.Retention{Age: time.Hour}, 0)
	r := submit(t, f, "Why?", "")
	if objects, _, err := fleet.Kept(t.Context(), f, r); err != nil || len(objects) != 5 {
		t.Errorf("the objects are %q, %v, want all, which are young", objects, err)
	}
	fleet.SetClock(f, func() time.Time { return time.Now().Add(25 * time.Hour) }, time.Hour)
	prune(t, f, fleet.Retention{Age: time.Hour}, 0)
	objects, _, err := fleet.Kept(t.Context(), f, r)
	if err != nil || len(objects) != 3 || slices.ContainsFunc(objects, func(o string) bool { return strings.HasPrefix(o, "asks.lost") }) {
		t.Errorf("the objects are %q, %v, want the orphans removed alone", objects, err)
	}
	for _, err := range l.Records(0) {
		if err != nil {
			t.Errorf("reading the log: %v", err)
		}
	}
}

// While runs are removed, submitted and retried at once: what Submit or Retry acknowledges is answered, unless it is removed after its end.
func TestPrune_LosesNoRequest(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		work(t, fleet.Worker{Fleet: f, Concurrency: 4, Agents: []fleet.Agent{asks(nil, answers("ok"))}})
		ctx, stop := context.WithCancel(t.Context())
		var pruning sync.WaitGroup
		for range 2 {
			f := open(t)
			pruning.Go(func() {
				for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
					if _, err := f.Prune(ctx, fleet.Retention{Age: time.Nanosecond}); err != nil && ctx.Err() == nil {
						t.Errorf("Prune = %v", err)
						return
					}
				}
			})
		}
		var submitting sync.WaitGroup
		for n := range 3 {
			submitting.Go(func() {
				for range 8 {
					r, err := f.Submit(t.Context(), "asks", question{"Why?" + strings.Repeat("x", n*150<<10)}, &fleet.SubmitOptions{Key: fmt.Sprint(n)})
					if err != nil {
						t.Errorf("Submit = %v", err)
						return
					}
					limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					result, err := r.Wait(limited)
					cancel()
					if err == nil && result.State != fleet.Succeeded || err != nil && !errors.Is(err, fleet.ErrNoRun) {
						t.Errorf("run %d ended with %+v, %v", n, result, err)
						return
					}
				}
			})
		}
		submitting.Wait()
		stop()
		pruning.Wait()
		for n := range 3 {
			r, err := f.Submit(t.Context(), "asks", question{"Why?" + strings.Repeat("x", n*150<<10)}, &fleet.SubmitOptions{Key: fmt.Sprint(n)})
			if err != nil {
				t.Fatal(err)
			}
			if result := wait(t, r); result.State != fleet.Succeeded {
				t.Errorf("in the end the run ended with %+v", result)
			}
		}
	})
}
