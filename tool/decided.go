// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"sync"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/recent"
)

// remembered is how many ids a registry keeps.
const remembered = 4096

// usedIDs are the ids of the last calls that were decided. An id may come from outside, as that of an
// MCP client does: one that comes again must not bring the decision about the first call with it.
type usedIDs struct {
	mu   sync.Mutex
	used recent.Map[event.CallID, struct{}]
}

// unused returns the id, or a new one if it was used.
func (u *usedIDs) unused(id event.CallID) event.CallID {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.used.Get(id); known {
		return event.CallID(ident.NewUUID())
	}
	u.used.Put(id, struct{}{})
	return id
}
