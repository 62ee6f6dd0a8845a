// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/drover-agents/drover/internal/persist"
	"github.com/drover-agents/drover/internal/plainjson"
)

// items are the values of a slice. They never change: reducers make new ones, which share memory. Nil is empty.
type items[S any] struct {
	// one is the only value, or nil. Most reducers keep a single value, and a vector of one takes the room of many.
	one  *S
	list persist.Vector[S]
	// positions has the positions of the first known values of the list, by key; see index.
	positions persist.Map[any, int]
	known     int
}

// single makes the items of one value, in one piece.
func single[S any](v S) *items[S] {
	both := &struct {
		items items[S]
		value S
	}{value: v}
	both.items.one = &both.value
	return &both.items
}

func listOf[S any](values []S) *items[S] {
	var it items[S]
	for _, v := range values {
		it.list = it.list.Append(v)
	}
	return &it
}

func (it *items[S]) length() int {
	switch {
	case it == nil:
		return 0
	case it.one != nil:
		return 1
	}
	return it.list.Len()
}

func (it *items[S]) at(i int) S {
	if it != nil && it.one != nil && i == 0 {
		return *it.one
	}
	return it.vector().At(i)
}

func (it *items[S]) last() (v S, ok bool) {
	switch {
	case it == nil:
		return v, false
	case it.one != nil:
		return *it.one, true
	}
	return it.list.Last()
}

func (it *items[S]) vector() persist.Vector[S] {
	if it == nil {
		return persist.Vector[S]{}
	}
	if it.one != nil {
		return it.list.Append(*it.one) // the list is empty
	}
	return it.list
}

func (it *items[S]) all() iter.Seq[S] { return it.vector().All() }

func (it *items[S]) with(v S) *items[S] {
	if it == nil {
		return &items[S]{list: persist.Vector[S]{}.Append(v)}
	}
	return &items[S]{list: it.vector().Append(v), positions: it.positions, known: it.known}
}

// index adds the positions of all values, by a key.
func (it *items[S]) index(key func(any) any) *items[S] {
	next := items[S]{list: it.vector()}
	if it != nil {
		next.positions, next.known = it.positions, it.known
	}
	for i, v := range next.list.From(next.known) {
		next.positions = next.positions.Set(key(v), i)
	}
	next.known = next.list.Len()
	return &next
}

// upserted replaces the last value with the key of v by v, or appends v.
func (it *items[S]) upserted(v S, key func(any) any) *items[S] {
	next := it.index(key)
	if i, ok := next.positions.Get(key(v)); ok {
		next.list = next.list.Set(i, v)
	} else {
		next.list = next.list.Append(v)
	}
	return next
}

// seedItems takes values as they were dispatched, or as they come from a store.
func seedItems[S any](values any) (_ any, err error) {
	defer asError(&err)
	list, ok := values.([]S)
	if raw, isRaw := values.(json.RawMessage); isRaw {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		ok = true
	}
	if !ok {
		return nil, fmt.Errorf("the values are %T, not %T", values, list)
	}
	return listOf(list), nil
}

func encodeItems[S any](all any) (_ json.RawMessage, err error) {
	defer asError(&err)
	it := all.(*items[S])
	return plainjson.Marshal(slices.AppendSeq(make([]S, 0, it.length()), it.all()))
}
