// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"slices"

	"github.com/drover-agents/drover/session"
)

// The events and slices of the model.
type (
	added  struct{ N int }               // has a default slice
	remark struct{ Text string }         // has a default slice, whose policy changes
	item   struct{ ID, Name, Owner int } // dispatched and kept: a slice by key, which changes
	total  int                           // 31 times the last plus N: the order counts
	picky  int                           // the sum of N; panics at 13
	seen   int                           // as total, of policy Log
	late   int                           // as total, registered at some time
	lived  int64                         // the numbers of all entries
)

// A fact is an entry of the model's log. Its value is an event, or one of those below.
type fact struct {
	value any
	tx    int
}

type (
	seededItems []item
	clearedAdds struct{}
	reset       struct{}
	failed      struct{} // the picky reducer has
	restored    int
	rolledBack  []int
	committed   []int
)

// A model is a session in its plainest form: a list, from which everything is computed again each
// time.
type model struct {
	facts   []fact
	hasLate bool
	noteLog bool // notes are of policy Log
	byName  bool // items have the name as their key
}

// live computes by definition which entries the state is made of, as numbers.
func (m *model) live() []int {
	history := [][]int{nil}
	for i, f := range m.facts {
		now := slices.Clone(history[i])
		switch v := f.value.(type) {
		case restored:
			now = history[v]
		case rolledBack:
			now = slices.DeleteFunc(now, func(pos int) bool { return slices.Contains(v, m.facts[pos-1].tx) })
		case committed:
		default:
			now = append(now, i+1)
		}
		history = append(history, now)
	}
	return history[len(m.facts)]
}

func (m *model) everything() []int {
	var all []int
	for i := range m.facts {
		all = append(all, i+1)
	}
	return all
}

// values are the slices as reducers are to make them.
type values struct {
	Added []added
	Noted []remark
	Items []item
	Total []total
	Picky []picky
	Seen  []seen
	Late  []late
	Lived []lived
}

func (m *model) values() values {
	state, log := m.fold(m.live()), m.fold(m.everything())
	state.Seen = log.Seen
	if m.noteLog {
		state.Noted = log.Noted
	}
	if !m.hasLate {
		state.Late = nil
	}
	return state
}

func (m *model) fold(positions []int) values {
	var v values
	for _, pos := range positions {
		v.see(m, m.facts[pos-1].value, lived(pos))
	}
	return v
}

func (v *values) see(m *model, fact any, pos lived) {
	switch e := fact.(type) {
	case added:
		v.Added = append(v.Added, e)
		v.Total, v.Seen, v.Late = next(v.Total, e), next(v.Seen, e), next(v.Late, e)
		if e.N != 13 {
			v.Picky = []picky{sum(v.Picky) + picky(e.N)}
		}
	case remark:
		v.Noted = append(v.Noted, e)
	case item:
		i := slices.IndexFunc(v.Items, func(old item) bool { return m.key(old) == m.key(e) })
		if i < 0 {
			v.Items = append(v.Items, e)
		} else {
			v.Items[i] = e
		}
	case seededItems:
		v.Items = slices.Clone(e)
		return
	case clearedAdds:
		v.Added = nil
		return
	case reset:
		*v = values{Seen: v.Seen, Noted: v.Noted}
		if !m.noteLog {
			v.Noted = nil
		}
		return
	case failed, restored, rolledBack, committed:
		return
	}
	v.Lived = append(v.Lived, pos)
}

func (m *model) key(e item) int {
	if m.byName {
		return e.Name
	}
	return e.ID
}

func next[N ~int](state []N, e added) []N { return []N{N(mixed(int(sum(state)), e))} }

func mixed(n int, e added) int { return n*31 + e.N }

func sum[N ~int](state []N) (n N) {
	for _, v := range state {
		n += v
	}
	return n
}

// define registers with a session what the model computes.
func (m *model) define(s *session.Session) {
	session.Define(s, session.SliceOptions[seen]{Policy: session.Log})
	m.defineNotes(s)
	m.defineItems(s)
	session.Upsert(s, func(e item) item { return e })
	session.Reduce(s, func(n total, e added) total { return total(mixed(int(n), e)) })
	session.Reduce(s, func(n seen, e added) seen { return seen(mixed(int(n), e)) })
	session.Reduce(s, func(n picky, e added) picky {
		if e.N == 13 {
			panic("unlucky")
		}
		return n + picky(e.N)
	})
	session.Append(s, func(e session.Entry) lived { return lived(e.Pos) })
	if m.hasLate {
		m.defineLate(s)
	}
}

func (m *model) defineLate(s *session.Session) {
	session.Reduce(s, func(n late, e added) late { return late(mixed(int(n), e)) })
}

func (m *model) defineNotes(s *session.Session) {
	o := session.SliceOptions[remark]{}
	if m.noteLog {
		o.Policy = session.Log
	}
	session.Define(s, o)
}

func (m *model) defineItems(s *session.Session) {
	o := session.SliceOptions[item]{Key: func(e item) any { return e.ID }}
	if m.byName {
		o.Key, o.Version = func(e item) any { return e.Name }, 1
	}
	session.Define(s, o)
}
