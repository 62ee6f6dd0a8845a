// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"sync/atomic"
)

// slots bound how many run at once. Nil bounds nothing.
type slots chan struct{}

func makeSlots(n int) slots {
	if n <= 0 {
		return nil
	}
	return make(slots, n)
}

func (s slots) take(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slots) give() {
	if s != nil {
		<-s
	}
}

// A reservation holds the slots of a call. A handler that runs on after its call is over keeps them:
// another call must not run beside it. Nil is the reservation without bounds.
type reservation struct {
	ofTool, ofAll slots
	holders       atomic.Int32
}

func (r *Registry) reserve(ctx context.Context, t *Tool) (*reservation, error) {
	r.mu.RLock()
	ofTool := r.bounds[t]
	r.mu.RUnlock()
	if ofTool == nil && r.slots == nil {
		return nil, nil
	}
	if err := ofTool.take(ctx); err != nil {
		return nil, err
	}
	if err := r.slots.take(ctx); err != nil {
		ofTool.give()
		return nil, err
	}
	p := &reservation{ofTool: ofTool, ofAll: r.slots}
	p.hold()
	return p, nil
}

func (p *reservation) hold() {
	if p != nil {
		p.holders.Add(1)
	}
}

// release returns the slots after the last holder.
func (p *reservation) release() {
	if p != nil && p.holders.Add(-1) == 0 {
		p.ofAll.give()
		p.ofTool.give()
	}
}
