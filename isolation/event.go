// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"strings"

	"github.com/drover-agents/drover/event"
)

// The kinds of events that a cell emits. A reader of their JSON gets an [event.Extension].
const (
	KindProtection event.Kind = "isolation:walls"
	KindBreach     event.Kind = "isolation:breach"
)

// Protection reports what isolates a run from the machine. It is emitted once, before the agent starts.
type Protection struct {
	Level Level `json:"level"`
	// Enforced and Missing describe the protections that hold and those that do not.
	Enforced []string `json:"enforced"`
	Missing  []string `json:"missing,omitempty"`
	// LeftOut are the requested variables of the host that are too sensitive to pass.
	LeftOut []string `json:"leftOutVariables,omitempty"`
	// Upstream is where model calls go.
	Upstream string `json:"upstream"`
}

// EventKind implements [event.Payload].
func (Protection) EventKind() event.Kind { return KindProtection }

// String is the level, and what is missing of it.
func (p Protection) String() string {
	if len(p.Missing) == 0 {
		return p.Level.String()
	}
	return p.Level.String() + ", without: " + strings.Join(p.Missing, "; ")
}

// A Breach is emitted when a run is ended because it exceeded one of its [Limits].
type Breach struct {
	// What is the limit: "bytes", "files", "free space", "memory", "memory of the machine" or "CPU time".
	What string `json:"what"`
	// Limit and Found are in the unit of What.
	Limit int64 `json:"limit"`
	Found int64 `json:"found"`
	// Message states what happened, and Next what to do about it.
	Message string `json:"message"`
	Next    string `json:"next,omitzero"`
}

// EventKind implements [event.Payload].
func (Breach) EventKind() event.Kind { return KindBreach }

// String is the message.
func (b Breach) String() string { return b.Message }
