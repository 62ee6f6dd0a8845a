// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

func TestAfter_YieldsEveryEntryOnceAndInOrder(t *testing.T) {
	const writers, each, readers = 8, 500, 4
	s := session.New(nil)
	var reading, writing sync.WaitGroup
	for r := range readers {
		reading.Go(func() {
			next := int64(r * 100) // a position that may not be there yet
			for entry, err := range s.After(t.Context(), next) {
				if next++; err != nil || entry.Pos != next {
					t.Errorf("reader %d got entry %d and %v, want %d", r, entry.Pos, err, next)
					return
				}
			}
			if next != writers*each {
				t.Errorf("reader %d ended at %d of %d", r, next, writers*each)
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				dispatch(t, t.Context(), s, added{w*each + i})
				_, _ = session.Query[added](s).Latest()
			}
		})
	}
	writing.Wait()
	if err := s.Close(); err != nil { // is the end of the readers too
		t.Fatal(err)
	}
	reading.Wait()
}

func TestAfter_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session.New(nil)
		dispatch(t, t.Context(), s, added{1}, added{2})
		ctx, cancel := context.WithCancel(t.Context())
		var got []int64
		var wg sync.WaitGroup
		wg.Go(func() {
			for entry := range s.After(ctx, -5) {
				got = append(got, entry.Pos)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		if want := []int64{1, 2}; !slices.Equal(got, want) {
			t.Errorf("it saw %v, want %v", got, want)
		}
	})
}

func TestSubscribe_ReceivesEventsUntilStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session.New(nil)
		dispatch(t, t.Context(), s, added{1}, remark{"a"}, added{2})
		var got []string
		sub := session.Subscribe(s, 1, func(pos int64, e added) { got = append(got, fmt.Sprint(pos, e.N)) })
		all := 0
		whole := session.Subscribe(s, 0, func(int64, session.Entry) { all++ })
		synctest.Wait()
		dispatch(t, t.Context(), s, remark{"b"}, added{3})
		synctest.Wait()
		sub.Stop()
		sub.Stop()
		dispatch(t, t.Context(), s, added{4})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		<-whole.Done()
		if want := []string{"3 2", "5 3"}; !slices.Equal(got, want) || all != 6 {
			t.Errorf("it got %v, want %v; the other %d of 6", got, want, all)
		}
	})
}

func TestSubscribe_HandlerReceivesEventsAfterAPanic(t *testing.T) {
	s := session.New(nil)
	var got []int
	sub := session.Subscribe(s, 0, func(_ int64, e added) {
		if e.N == 1 {
			panic("not this one")
		}
		got = append(got, e.N)
	})
	dispatch(t, t.Context(), s, added{1}, added{2})
	_ = s.Close()
	<-sub.Done()
	if want := []int{2}; !slices.Equal(got, want) {
		t.Errorf("it got %v, want %v", got, want)
	}
}

func TestAfter_DecodesTypesThatTheReaderKnows(t *testing.T) {
	store := newDisk()
	s, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	dispatch(t, t.Context(), s, added{1}, &named{2}, item{ID: 3})
	again, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	session.Append(again, func(e named) string { return fmt.Sprint(e.X) })
	_ = session.Query[added](again)
	var got []string
	for e := range again.Events() {
		if v, ok := e.Payload.(session.Value); ok {
			got = append(got, fmt.Sprintf("%T", v.Get()))
		} else {
			got = append(got, fmt.Sprintf("%T", e.Payload))
		}
	}
	if want := []string{"session_test.added", "session_test.named", "event.Extension"}; !slices.Equal(got, want) {
		t.Errorf("payloads are %v, want %v", got, want)
	}
	kind := event.Kind("go:github.com/drover-agents/drover/session_test.item")
	if ext, _ := entries(again)[2].Event.Payload.(event.Extension); ext.Kind != kind || string(ext.Data) != `{"ID":3,"Name":0,"Owner":0}` {
		t.Errorf("what is unknown was kept as %+v", ext)
	}
}
