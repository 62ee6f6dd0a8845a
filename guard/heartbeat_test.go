// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/guard"
)

func TestHeartbeat_ElapsedIsTheTimeSinceTheLastBeat(t *testing.T) {
	c := &setClock{noon}
	h := guard.NewHeartbeat(&guard.HeartbeatOptions{Clock: c.clock()})
	c.now = noon.Add(time.Minute)
	if got := h.Elapsed(); got != time.Minute {
		t.Errorf("before any beat: %v, want a minute since the making", got)
	}
	h.Beat()
	c.now = c.now.Add(time.Second)
	if got := h.Elapsed(); got != time.Second {
		t.Errorf("after a beat: %v, want a second", got)
	}
}

func TestHeartbeat_ClockThatGoesBackDoesNotHideASilence(t *testing.T) {
	c := &setClock{noon}
	h := guard.NewHeartbeat(&guard.HeartbeatOptions{Clock: c.clock()})
	c.now = noon.Add(-time.Hour)
	if got := h.Elapsed(); got != 0 {
		t.Errorf("after the clock went back: %v, want none", got)
	}
	c.now = c.now.Add(time.Minute)
	if got := h.Elapsed(); got != time.Minute {
		t.Errorf("a minute later: %v", got)
	}
}

func TestHeartbeat_NilIsNeverSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *guard.Heartbeat
		h.Beat()
		h.OnBeat(func() { t.Error("it beats") })
		h.Beat()
		time.Sleep(time.Hour)
		if h.Elapsed() != 0 {
			t.Error("time passes for it")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		h.Watch(ctx, 0, func() { t.Error("it is silent") })
	})
}

func TestHeartbeat_PanicOfOneFunctionDoesNotAffectOthers(t *testing.T) {
	var log strings.Builder
	h := guard.NewHeartbeat(&guard.HeartbeatOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var called []string
	h.OnBeat(func() { called = append(called, "first") })
	h.OnBeat(func() { panic("oh no") })
	h.OnBeat(func() { called = append(called, "last") })
	h.Beat()
	if diff := cmp.Diff([]string{"first", "last"}, called); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !strings.Contains(log.String(), "oh no") {
		t.Errorf("the log says nothing of the panic: %q", log.String())
	}
}

// A function that uses the heartbeat would wait for ever if it were called under the lock.
func TestHeartbeat_FunctionMayUseTheHeartbeat(t *testing.T) {
	h := guard.NewHeartbeat(nil)
	calls := 0
	h.OnBeat(func() {
		calls++
		h.Elapsed()
		if calls == 1 {
			h.OnBeat(func() { calls += 10 })
		}
	})
	h.Beat()
	if calls != 1 {
		t.Errorf("%d after the first beat: a function was called at the beat in which it was added", calls)
	}
	h.Beat()
	if calls != 12 {
		t.Errorf("%d after the second beat, want 12", calls)
	}
}

func TestWatch_WaitsForASilence(t *testing.T) {
	cases := []struct {
		name  string
		beats []time.Duration // pauses before each beat
		want  time.Duration   // when fn is called
	}{
		{"no beat at all", nil, 10 * time.Second},
		{"one beat", []time.Duration{4 * time.Second}, 14 * time.Second},
		{"a beat in the last moment", []time.Duration{10*time.Second - 1}, 20*time.Second - 1},
		{"many beats", []time.Duration{9 * time.Second, time.Second, 9 * time.Second, 1, 1}, 29*time.Second + 2},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := guard.NewHeartbeat(nil)
				start := time.Now()
				var calls []time.Duration
				var wg sync.WaitGroup
				wg.Go(func() {
					h.Watch(t.Context(), 10*time.Second, func() { calls = append(calls, time.Since(start)) })
				})
				for _, pause := range tc.beats {
					time.Sleep(pause)
					h.Beat()
				}
				wg.Wait()
				if diff := cmp.Diff([]time.Duration{tc.want}, calls); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

func TestWatch_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := guard.NewHeartbeat(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		h.Watch(ctx, 10*time.Second, func() { t.Error("there was no silence") })
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("it returned after %v, want 5s", got)
		}
		h.Watch(ctx, -1, func() { t.Error("the context was over before") })
	})
}

// A watch that begins late counts from the last beat, not from its own beginning.
func TestWatch_CountsASilenceBeforeItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := guard.NewHeartbeat(nil)
		time.Sleep(8 * time.Second)
		start := time.Now()
		h.Watch(t.Context(), 10*time.Second, func() {})
		if got := time.Since(start); got != 2*time.Second {
			t.Errorf("it returned after %v, want 2s", got)
		}
	})
}

func TestHeartbeat_ConcurrentBeats(t *testing.T) {
	h := guard.NewHeartbeat(nil)
	var beats atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			h.OnBeat(func() { beats.Add(1) })
			for range 100 {
				h.Beat()
				if h.Elapsed() < 0 {
					t.Error("the last beat is in the future")
				}
			}
		})
	}
	wg.Wait()
	before := beats.Load()
	h.Beat()
	if got := beats.Load() - before; got != 16 {
		t.Errorf("%d functions called, want 16", got)
	}
}
