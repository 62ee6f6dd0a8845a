// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/persist"
	"github.com/drover-agents/drover/internal/plainjson"
)

// ToolPermissions list the tools that the agent may use from now on, by bare or full names. The last one holds.
type ToolPermissions struct {
	// Blocked are not to be used.
	Blocked []string `json:"blocked,omitempty"`
	// Allowed, unless it is empty, are the only ones to be used.
	Allowed []string `json:"allowed,omitempty"`
}

// Feedback is a message to the agent about its own work.
type Feedback struct {
	Provider     string   `json:"provider"`
	Summary      string   `json:"summary"`
	Observations []string `json:"observations,omitempty"`
	Suggestions  []string `json:"suggestions,omitempty"`
	// Severity is "info", "caution" or "warning".
	Severity string `json:"severity,omitzero"`
	// CallID is the tool call before the message.
	CallID event.CallID `json:"toolUseId,omitzero"`
}

// PolicyState is what policies about tool calls need to know of the past. It is made of [ToolInvoked]:
// a call that was reported twice counts once. Rolling back a call that others were made in takes back
// what it holds of them.
type PolicyState struct{ invoked, read nameSet }

// Invoked has the tools that have succeeded, by the names of [ToolInvoked]. It must not be changed.
func (p PolicyState) Invoked() map[string]bool { return p.invoked.asMap() }

// ReadPaths has the files that the agent knows, as clean absolute paths: those that it has read, and
// those that it has written. It must not be changed.
func (p PolicyState) ReadPaths() map[string]bool { return p.read.asMap() }

func (p PolicyState) with(e ToolInvoked) PolicyState {
	if !e.Success() {
		return p
	}
	p.invoked = p.invoked.with(e.Name)
	if e.Path != "" {
		p.read = p.read.with(e.Path)
	}
	for _, path := range e.MorePaths {
		p.read = p.read.with(path)
	}
	return p
}

type policyStateWire struct {
	Invoked   []string `json:"invoked"`
	ReadPaths []string `json:"readPaths"`
}

// MarshalJSON gives sorted lists.
func (p PolicyState) MarshalJSON() ([]byte, error) {
	return plainjson.Marshal(policyStateWire{p.invoked.sorted(), p.read.sorted()})
}

// UnmarshalJSON reads what MarshalJSON gives.
func (p *PolicyState) UnmarshalJSON(data []byte) error {
	var w policyStateWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*p = PolicyState{}
	for _, name := range w.Invoked {
		p.invoked = p.invoked.with(name)
	}
	for _, path := range w.ReadPaths {
		p.read = p.read.with(path)
	}
	return nil
}

// A nameSet never changes. Adding to it is cheap at any size: a session that is opened again adds every name again.
// A Go map of it is made once, on demand.
type nameSet struct {
	names persist.Map[string, struct{}]
	plain *plainSet
}

type plainSet struct {
	once sync.Once
	set  map[string]bool
}

func (n nameSet) with(name string) nameSet {
	if _, ok := n.names.Get(name); ok {
		return n
	}
	return nameSet{n.names.Set(name, struct{}{}), new(plainSet)}
}

func (n nameSet) asMap() map[string]bool {
	if n.plain == nil {
		return nil
	}
	n.plain.once.Do(func() {
		n.plain.set = make(map[string]bool, n.names.Len())
		for name := range n.names.All() {
			n.plain.set[name] = true
		}
	})
	return n.plain.set
}

func (n nameSet) sorted() []string {
	names := slices.Sorted(maps.Keys(n.asMap()))
	if names == nil {
		return []string{}
	}
	return names
}

// EventKind implements [event.Payload].
func (ToolPermissions) EventKind() event.Kind { return "tool:permissions" }

// EventKind implements [event.Payload].
func (Feedback) EventKind() event.Kind { return "guard:feedback" }

// EventKind implements [event.Payload].
func (PolicyState) EventKind() event.Kind { return "guard:policy_state" }
