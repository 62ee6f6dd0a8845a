// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/advice"
)

// ErrInReducer is the error for a reducer that calls its own session, which waits for it and could never answer.
var ErrInReducer = advice.Wrap(errors.New("session: a reducer calls the session that waits for it"), "return the change from the reducer, and dispatch from outside of it")

// A logOrder is the lock of a log. A goroutine that runs a reducer under it gets an error instead of waiting for itself.
type logOrder struct {
	mu       sync.Mutex
	reducing atomic.Bool // the holder runs reducers
	misused  atomic.Bool // one of them has called the session
}

// Lock panics in a reducer, which counts as its failure.
func (o *logOrder) Lock() {
	if err := o.acquire(); err != nil {
		panic(err)
	}
}

func (o *logOrder) Unlock() {
	o.reducing.Store(false)
	o.mu.Unlock()
}

// reducerWait is how long a reducer waits for the lock. It cannot know whether the lock is that of its own session,
// or of another one, which will be free in a moment.
const reducerWait = 100 * time.Millisecond

// acquire is Lock with an error instead of the panic.
func (o *logOrder) acquire() error {
	if o.mu.TryLock() {
		return nil
	}
	if !o.reducing.Load() || !inReducer() {
		o.mu.Lock()
		return nil
	}
	for end := time.Now().Add(reducerWait); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if o.mu.TryLock() {
			return nil
		}
	}
	o.misused.Store(true)
	return ErrInReducer
}

// inReducer reports whether this goroutine is in a reducer of some session.
func inReducer() bool {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		if n == 0 {
			return false
		}
		for frames, more := runtime.CallersFrames(pcs[:n]), true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if strings.HasSuffix(f.Function, "/session.(*step).run") {
				return true
			}
		}
	}
}
