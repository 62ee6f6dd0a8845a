// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
)

// Clone makes a session in memory with the same log, state and reducers. The two share what they have
// and go their own ways from here; it copies nothing. The clone has an id of its own, and the tags and
// the parent of the original unless the options say otherwise. Transactions stay with the original.
func (s *Session) Clone(opts *Options) *Session {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Now, o.NewID, o.Logger = orElse(o.Now, s.opts.Now), orElse(o.NewID, s.opts.NewID), cmp.Or(o.Logger, s.opts.Logger)
	if o.Tags == nil {
		o.Tags = s.head.Tags
	}
	o.Parent = cmp.Or(o.Parent, s.parent)
	c := New(&o)
	s.order.Lock()
	defer s.order.Unlock()
	snap := s.Snapshot()
	c.archive = s.archive
	c.log, c.base, c.last, c.state, c.saved, c.nextTx = s.log, s.base, s.last, snap.state, s.saved, s.nextTx
	c.logCells = slices.Clone(s.logCells)
	for t, sl := range s.slices {
		c.slices[t] = sl.clone()
	}
	maps.Copy(c.types, s.types)
	return c
}

func orElse[F any](f, other func() F) func() F {
	if f == nil {
		return other
	}
	return f
}

func (sl *slice) clone() *slice {
	c := *sl
	c.events = slices.Clone(sl.events)
	c.reducers = make(map[reflect.Type][]reducer, len(sl.reducers))
	for t, reducers := range sl.reducers {
		c.reducers[t] = slices.Clone(reducers)
	}
	return &c
}
