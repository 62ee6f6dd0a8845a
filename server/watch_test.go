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
	"github.com/drover-agents/drover/internal/dirwatch"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
)

// A server that watches runs that do nothing is woken by nothing: no program answers for these, and none comes or goes.
func TestWatching_IdleRunsCauseNoWork(t *testing.T) {
	store, err := record.Open(filepath.Join(t.TempDir(), "runs"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := prompt.FromText[string]("Look at the shop.")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
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
		defer func() { _ = lock.Close() }()
		if err := errors.Join(os.Remove(filepath.Join(run.Path, "end.json")), filelock.Lock(t.Context(), lock, time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	last, err := store.Last()
	if err != nil {
		t.Fatal(err)
	}
	outside := dirwatch.New(t.TempDir()) // the goroutine of the system's reports is not in the bubble
	defer outside.Close()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(t.Context(), Options{Store: store, Notify: func(n Notice) { t.Errorf("the notice %+v", n) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		live := make(chan frame, 10)
		var all sync.WaitGroup
		all.Go(func() { watchLive(ctx, last.Path, "/state", live) }) // that of a stream
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
