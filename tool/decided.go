// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"sync"

	"github.com/drover-agents/drover/internal/uuid"
)

// remembered is how many ids a registry keeps.
const remembered = 4096

// usedIDs are the ids of the last calls that were decided. An id may come from outside, as that of an
// MCP client does: one that comes again must not bring the decision about the first call with it.
type usedIDs struct {
	mu   sync.Mutex
	used map[string]bool
	ring []string
	next int
}

// unused returns the id, or a new one if it was used.
func (u *usedIDs) unused(id string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.used[id] {
		return uuid.New()
	}
	if u.used == nil {
		u.used = map[string]bool{}
	}
	u.used[id] = true
	if len(u.ring) < remembered {
		u.ring = append(u.ring, id)
		return id
	}
	delete(u.used, u.ring[u.next])
	u.ring[u.next] = id
	u.next = (u.next + 1) % remembered
	return id
}
