// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/drover-agents/drover/guard"
)

// StartServer starts the embedded server of a folder.
func StartServer(dir string) (*server.Server, error) { return startServer(dir) }

// OpenIn opens a fleet on the embedded server of another, so that tests share one.
func OpenIn(ctx context.Context, ns *server.Server, opts *Options) (*Fleet, error) {
	return connect(ctx, opts, "", nats.InProcessServer(ns))
}

// SetClock sets the clock of a fleet, and how often it is read. Set it before workers begin.
func SetClock(f *Fleet, now func() time.Time, check time.Duration) { f.now, f.check = now, check }

// FireDue submits what is due.
func FireDue(ctx context.Context, f *Fleet) error {
	_, err := f.fireDue(ctx)
	return err
}

// FireStale fires a schedule as it was read the first time, as a worker does that another one has overtaken, and one that goes on
// where another one died before it kept that it had fired.
func FireStale(ctx context.Context, f *Fleet, times int) error {
	for s, err := range f.schedules(ctx) {
		if err != nil {
			return err
		}
		for range times {
			stale := *s
			if _, err := f.fire(ctx, &stale); err != nil {
				return err
			}
		}
	}
	return nil
}

// Admit counts an attempt of a run before it begins, and returns how to settle it.
func Admit(ctx context.Context, r *Run) (settle func(used guard.Usage) error, reason string, err error) {
	adm, reason, err := r.f.admit(ctx, r)
	return func(used guard.Usage) error { return r.f.settle(r, adm, used, false) }, reason, err
}

// UnderWay is how many runs count as under way for the limits.
func UnderWay(ctx context.Context, f *Fleet) (int, error) {
	a, err := f.admissions(ctx)
	return len(a.Running), err
}
