// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"sync"

	"github.com/drover-agents/drover/event"
)

// asides are what the cell and the gateway tell while the CLI talks. Whoever tells never waits.
type asides struct {
	told chan struct{} // holds something while there is something to take

	mu      sync.Mutex
	waiting []event.Payload
}

func newAsides() *asides { return &asides{told: make(chan struct{}, 1)} }

// tell may be called from any goroutine.
func (a *asides) tell(p event.Payload) {
	a.mu.Lock()
	a.waiting = append(a.waiting, p)
	a.mu.Unlock()
	select {
	case a.told <- struct{}{}:
	default:
	}
}

// take returns what was told since the last time.
func (a *asides) take() []event.Payload {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.waiting
	a.waiting = nil
	return all
}
