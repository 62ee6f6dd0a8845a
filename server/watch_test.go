// SPDX-License-Identifier: Apache-2.0

//go:build linux

package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
)

// runsInProgress makes runs that are in progress until their locks are closed. No program answers for them.
func runsInProgress(t *testing.T, store *record.Store, n int) (runs []*record.Run, locks []*os.File) {
	t.Helper()
	p, err := prompt.FromText[string]("Look at the shop.")
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if _, err := drover.Evaluate(t.Context(), agenttest.New(agenttest.Done("")), p, &drover.Options{Recorder: record.NewRecorder(store, nil)}); err != nil {
			t.Fatal(err)
		}
		run, err := store.Last()
		if err != nil {
			t.Fatal(err)
		}
		lock, err := os.OpenFile(filepath.Join(run.Path, "lock"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() })
		if err := errors.Join(os.Remove(filepath.Join(run.Path, "end.json")), filelock.Lock(t.Context(), lock, time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		runs, locks = append(runs, run), append(locks, lock)
	}
	return runs, locks
}

// A run whose program is killed has a notice of its end, as one that is lost; also if that was before it could be watched.
func TestWatching_LostRunIsNoticed(t *testing.T) {
	store, err := record.Open(filepath.Join(t.TempDir(), "runs"))
	if err != nil {
		t.Fatal(err)
	}
	runs, locks := runsInProgress(t, store, 1)
	s, err := New(t.Context(), Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	notices := make(chan Notice, 2)
	s.o.Notify = func(n Notice) { notices <- n }
	changed := s.watch.next()
	s.startWatching()
	<-changed // it is watched
	if err := locks[0].Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case n := <-notices:
			if n.Event != "end" || n.Run.ID != runs[0].ID || n.Run.State != record.Lost {
				t.Errorf("the notice is %+v", n)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no notice in 10 s")
		}
		s.watchRun(t.Context(), store.Folder(runs[0])) // as if it had just begun
	}
}

// A server that watches runs that do nothing is woken by nothing: no program answers for these, and none comes or goes.
func TestWatching_IdleRunsCauseNoWork(t *testing.T) {
	store, err := record.Open(filepath.Join(t.TempDir(), "runs"))
	if err != nil {
		t.Fatal(err)
	}
	runs, _ := runsInProgress(t, store, 3)
	outside := plainfile.NewWatch(t.TempDir()) // the goroutine of the system's reports is not in the bubble
	defer outside.Close()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(t.Context(), Options{Store: store, Notify: func(n Notice) { t.Errorf("the notice %+v", n) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		live := make(chan frame, 10)
		var all sync.WaitGroup
		all.Go(func() { watchLive(ctx, runs[0].Path, "/state", live) }) // that of a stream
		time.Sleep(time.Minute)
		before := testkit.WakeUps(t)
		time.Sleep(10 * time.Minute)
		if n := testkit.WakeUps(t) - before; n > 500 {
			t.Errorf("about %d wake-ups in ten minutes without changes", n)
		}
		if len(live) != 1 {
			t.Errorf("a stream has %d states, want one: the run cannot be controlled", len(live))
		}
		cancel()
		all.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
