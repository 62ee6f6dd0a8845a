// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"sync"
)

// Wait returns when no handler runs any more, or when the context ends. A handler may run on after its call was timed out or
// cancelled, if it ignores its context. Calls may begin during the wait.
func (r *Registry) Wait(ctx context.Context) error {
	select {
	case <-r.running.ended():
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("tool: handlers still run, although their calls are over"), ctx.Err())
	}
}

// handlers counts those that run. A sync.WaitGroup would do, were it not forbidden to begin from zero during a wait.
type handlers struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n is zero again; nil while it is
}

// Go runs fn on a goroutine of its own.
func (h *handlers) Go(fn func()) {
	h.mu.Lock()
	if h.n++; h.n == 1 {
		h.idle = make(chan struct{})
	}
	h.mu.Unlock()
	go func() {
		defer h.done()
		fn()
	}()
}

func (h *handlers) done() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n--; h.n == 0 {
		close(h.idle)
		h.idle = nil
	}
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// ended returns a channel that is closed when none runs.
func (h *handlers) ended() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == 0 {
		return closed
	}
	return h.idle
}
