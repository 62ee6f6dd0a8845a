// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/tool"
)

// HeartbeatOptions configures a [Heartbeat]. Nil and the zero value are ready to use.
type HeartbeatOptions struct {
	// Clock gives the time of a beat. Nil means the real time.
	Clock Clock
	// Logger receives panics of functions. Nil discards.
	Logger *slog.Logger
}

// A Heartbeat has the time of the last sign of life of a run. Make it with [NewHeartbeat]. It is safe for
// concurrent use. A nil Heartbeat can be beaten too, and is never silent.
type Heartbeat struct {
	clock Clock
	log   *slog.Logger

	mu     sync.Mutex
	last   time.Time
	onBeat []func() // only appended to: Beat reads what it has seen outside the lock
}

// NewHeartbeat makes a heartbeat. The making counts as the first beat.
func NewHeartbeat(opts *HeartbeatOptions) *Heartbeat {
	if opts == nil {
		opts = &HeartbeatOptions{}
	}
	h := &Heartbeat{clock: opts.Clock, log: safelog.Logger(opts.Logger)}
	h.last = h.clock.now()
	return h
}

// Beat reports that the run is alive, and calls the functions of [Heartbeat.OnBeat].
func (h *Heartbeat) Beat() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.last = h.clock.now()
	fns := h.onBeat
	h.mu.Unlock()
	for _, fn := range fns {
		h.call(fn)
	}
}

func (h *Heartbeat) call(fn func()) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("guard: a function called at a heartbeat panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	fn()
}

// Elapsed returns the time since the last beat.
func (h *Heartbeat) Elapsed() time.Duration {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.now()
	if now.Before(h.last) { // the clock was put back: count from here
		h.last = now
	}
	return now.Sub(h.last)
}

// OnBeat has fn called at every later beat, by the goroutine that beats, after those that were given before. It must not
// block, and may use the heartbeat. A panic in it is logged and affects no other callback.
func (h *Heartbeat) OnBeat(fn func()) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onBeat = append(h.onBeat, fn)
}

// Watch calls fn once there was no beat for as long as limit, and returns when fn does. It also returns when ctx ends,
// without calling fn. Run it in a goroutine of your own, and end ctx when the work is over:
//
//	go heartbeat.Watch(ctx, time.Minute, giveUp)
func (h *Heartbeat) Watch(ctx context.Context, limit time.Duration, fn func()) {
	if h == nil {
		<-ctx.Done()
		return
	}
	// Beats are many and silences few, so a beat costs the timer nothing: it wakes up when the last
	// beat that it knew of is too old, and goes on from the one that came since.
	timer := time.NewTimer(limit - h.Elapsed())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		silence := h.Elapsed()
		if silence >= limit && ctx.Err() == nil {
			fn()
			return
		}
		timer.Reset(limit - silence)
	}
}

var heartbeatKey = tool.NewKey[*Heartbeat]("heartbeat")

// WithHeartbeat returns a context in which [HeartbeatFrom] finds the heartbeat.
func WithHeartbeat(ctx context.Context, h *Heartbeat) context.Context {
	return heartbeatKey.With(ctx, h)
}

// HeartbeatFrom returns the heartbeat that a tool handler may beat while it works long. Without a
// heartbeat it returns nil, which can be beaten as well.
func HeartbeatFrom(ctx context.Context) *Heartbeat {
	h, _ := heartbeatKey.From(ctx)
	return h
}
