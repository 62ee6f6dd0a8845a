// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/advice"
)

// Conditions of a [Registry].
var (
	// ErrDuplicate is wrapped when an agent is added whose name is taken.
	ErrDuplicate = errors.New("agent: the name is taken")
	// ErrUnknown is wrapped when the requested agent was not added.
	ErrUnknown = errors.New("agent: no such agent")
)

var errNoName = errors.New("agent: the adapter has no name; make its Agent method return one")

// A Registry finds adapters by the name of their agent. The zero value is ready to use. It is safe for concurrent use.
type Registry struct {
	mu       sync.RWMutex
	adapters map[string]Adapter
}

// NewRegistry makes a registry of adapters.
func NewRegistry(adapters ...Adapter) (*Registry, error) {
	r := new(Registry)
	for _, a := range adapters {
		if err := r.Add(a); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Add adds an adapter. A name that is taken is refused with [ErrDuplicate].
func (r *Registry) Add(a Adapter) error {
	if a == nil {
		return errors.New("agent: a registry cannot hold a nil adapter")
	}
	name := a.Agent()
	if name == "" {
		return errNoName
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.adapters[name]; taken {
		return advice.Wrap(fmt.Errorf("%w: there is an adapter for %q already", ErrDuplicate, name), "add one adapter for each agent")
	}
	if r.adapters == nil {
		r.adapters = map[string]Adapter{}
	}
	r.adapters[name] = a
	return nil
}

// Lookup finds an adapter. The error for an unknown name wraps [ErrUnknown] and lists what there is.
func (r *Registry) Lookup(name string) (Adapter, error) {
	r.mu.RLock()
	a, there := r.adapters[name]
	r.mu.RUnlock()
	if there {
		return a, nil
	}
	names := "none"
	if all := r.Names(); len(all) > 0 {
		names = strings.Join(all, ", ")
	}
	return nil, advice.Wrap(fmt.Errorf("%w: %q", ErrUnknown, name), "choose one of those there are: %s", names)
}

// Names lists the agents in the order of the alphabet.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	names := make([]string, 0, len(r.adapters))
	for name := range r.adapters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
