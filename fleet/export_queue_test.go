// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/drover-agents/drover/guard"
)

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

// OpenLogFor opens a log for a delivery of the request with a sequence.
func OpenLogFor(ctx context.Context, f *Fleet, id string, request uint64) (*Log, error) {
	return f.openLog(ctx, id, "late", request)
}

// RequestOf is the sequence of the request of a run.
func RequestOf(ctx context.Context, r *Run) (uint64, error) {
	m, err := r.request(ctx)
	return m.seq, err
}

// Kept are the names of all objects, and how many messages the log of a run has.
func Kept(ctx context.Context, f *Fleet, r *Run) (objects []string, messages uint64, err error) {
	all, err := f.objects.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, 0, err
	}
	for _, o := range all {
		objects = append(objects, o.Name)
	}
	info, err := f.logs.Info(ctx, jetstream.WithSubjectFilter(r.subject("log")))
	if err != nil {
		return nil, 0, err
	}
	return objects, info.State.Subjects[r.subject("log")], nil
}

// PutOrphan keeps an object that no message refers to.
func PutOrphan(ctx context.Context, f *Fleet, name string) error {
	_, err := f.objects.PutBytes(ctx, name, []byte("lost"))
	return err
}

// MarkRemoved begins to remove a run, as a process does that dies then.
func MarkRemoved(ctx context.Context, r *Run) error {
	m, err := r.f.last(ctx, r.subject("log"))
	if err != nil {
		return err
	}
	request, err := r.request(ctx)
	if err == nil {
		_, err = r.markRemoved(ctx, request.seq, m.seq, "")
	}
	return err
}
