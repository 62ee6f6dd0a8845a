// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/drover-agents/drover/internal/persist"
)

// Clone makes a session in memory with the same log, state and reducers. From then on the two are independent. It
// copies nothing, but reads the part of the log that was left in the store. The clone has an id of its own. It has
// the tags and the parent of the original unless the options set others. Transactions stay with the original: the
// clone keeps their events for good.
func (s *Session) Clone(opts *Options) (*Session, error) {
	c := newSession(s.optionsOfClone(opts))
	c.head = c.newHead()
	s.order.Lock()
	defer s.order.Unlock()
	log, err := s.wholeLogLocked()
	if err != nil {
		return nil, err
	}
	c.log, c.last, c.state, c.saved, c.nextTx = log, s.last, s.Snapshot().state, s.saved, s.nextTx
	c.logCells = slices.Clone(s.logCells)
	for t, sl := range s.slices {
		c.slices[t] = sl.clone()
	}
	maps.Copy(c.types, s.types)
	c.join()
	return c, nil
}

func (s *Session) optionsOfClone(opts *Options) *Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Now, o.NewID, o.Logger = orElse(o.Now, s.opts.Now), orElse(o.NewID, s.opts.NewID), cmp.Or(o.Logger, s.opts.Logger)
	o.Parent = cmp.Or(o.Parent, s.opts.Parent)
	if o.Tags == nil {
		o.Tags = s.head.Tags
	}
	return &o
}

// wholeLogLocked is the log from its first entry on. order is held.
func (s *Session) wholeLogLocked() (persist.Vector[*Entry], error) {
	if s.base == 0 {
		return s.log, nil
	}
	var log persist.Vector[*Entry]
	for entry, err := range s.entriesLocked(0) {
		if err != nil {
			return log, err
		}
		log = log.Append(entry)
	}
	return log, nil
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
