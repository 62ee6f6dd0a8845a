// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A Status is what a list shows of a run.
type Status struct {
	State State `json:"state"`
	// Submitted is when the request was kept, the last time if the run was retried.
	Submitted time.Time `json:"submitted"`
	// Result is the end of the run, nil before it.
	Result *Result `json:"result,omitempty"`
	// Attempts is how often a worker began since the last retry, without those that handed the run back.
	Attempts int64 `json:"attempts"`
}

// Status reads how far the run is.
func (r *Run) Status(ctx context.Context) (*Status, error) {
	fail := func(err error) (*Status, error) { return nil, fmt.Errorf("fleet: the run %s: %w", r.id, err) }
	request, err := r.request(ctx)
	if err == nil && request.seq == 0 {
		err = ErrNoRun
	}
	if err != nil {
		return fail(err)
	}
	last, err := r.f.last(ctx, r.subject("log"))
	if err != nil {
		return fail(err)
	}
	tail, err := positionOf(&last)
	if err != nil {
		return fail(err)
	}
	s := &Status{Submitted: request.time, Attempts: tail.attempts}
	if s.State, s.Result, err = r.stateAt(ctx, &last); err != nil {
		return nil, err
	}
	if s.Result != nil {
		s.Attempts = s.Result.Attempts
	}
	return s, nil
}

// Request is the request of the run, as JSON.
func (r *Run) Request(ctx context.Context) (json.RawMessage, error) {
	m, err := r.f.message(ctx, r.subject("work")+".*", 1)
	if err != nil {
		return nil, fmt.Errorf("fleet: the request of the run %s: %w", r.id, err)
	}
	return m.body, nil
}

// Knows reports whether a worker has ever served an agent of this name here. A run of another one waits.
func (f *Fleet) Knows(ctx context.Context, agent string) (bool, error) {
	names := f.work.ConsumerNames(ctx)
	for name := range names.Name() {
		if name == consumerName(Normal, agent) {
			return true, nil
		}
	}
	if err := names.Err(); err != nil {
		return false, fmt.Errorf("fleet: listing agents: %w", err)
	}
	return false, nil
}
