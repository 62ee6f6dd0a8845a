// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"slices"
	"sync"
)

// turns let calls run at the same time only if they cannot change the same paths. A call that may change everything
// runs alone. Calls are served in the order of arrival, so that none waits for ever.
type turns struct {
	mu     sync.Mutex
	claims []*claim // those that work and those that wait, in the order in which they came
}

// A claim is the position of a call in the order of a tree.
type claim struct {
	paths   []string // nil claims everything
	working chan struct{}
}

func (c *claim) overlaps(other *claim) bool {
	if c.paths == nil || other.paths == nil {
		return true
	}
	return slices.ContainsFunc(c.paths, func(mine string) bool {
		return slices.ContainsFunc(other.paths, func(theirs string) bool { return within(mine, theirs) || within(theirs, mine) })
	})
}

// take waits for a turn. Paths are relative to the tree; nil claims everything.
func (t *turns) take(ctx context.Context, paths []string) (*claim, error) {
	c := &claim{paths: paths, working: make(chan struct{})}
	t.mu.Lock()
	t.claims = append(t.claims, c)
	t.wakeLocked()
	t.mu.Unlock()
	select {
	case <-c.working: // also where the context has ended as well: it is ours
		return c, nil
	case <-ctx.Done():
		t.give(c)
		return nil, context.Cause(ctx)
	}
}

// give gives a turn back, or gives up waiting for it. Giving it back twice is harmless.
func (t *turns) give(c *claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claims = slices.DeleteFunc(t.claims, func(other *claim) bool { return other == c })
	t.wakeLocked()
}

// wakeLocked wakes the calls that overlap no earlier claim.
func (t *turns) wakeLocked() {
	for i, c := range t.claims {
		if isClosed(c.working) || slices.ContainsFunc(t.claims[:i], c.overlaps) {
			continue
		}
		close(c.working)
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
