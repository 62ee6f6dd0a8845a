// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-agents/drover/session"
)

// BenchmarkDispatch takes one event through two reducers. "copying" is the plain way to keep old states:
// a new list for each event.
//
// A session is a run: thousands of events. An endless one shows what the garbage collector adds, which
// looks at everything that is kept again and again.
func BenchmarkDispatch(b *testing.B) {
	b.Run("two reducers", func(b *testing.B) {
		dispatchAll(b, func() *session.Session { return counting(session.New(nil)) }, 10_000)
	})
	b.Run("two reducers, one endless session", func(b *testing.B) {
		dispatchAll(b, func() *session.Session { return counting(session.New(nil)) }, b.N)
	})
	b.Run("copying, 10000 items", func(b *testing.B) {
		var mu sync.Mutex
		items, sum := make([]analysed, 10_000), 0
		b.ReportAllocs()
		for b.Loop() {
			mu.Lock()
			next := append(slices.Clip(items), analysed{"a.go", 1})
			items, sum = next[1:], sum+1
			mu.Unlock()
		}
	})
}

func counting(s *session.Session) *session.Session {
	session.Append(s, func(e analysed) analysed { return e })
	session.Reduce(s, func(n int, e analysed) int { return n + e.Issues })
	return s
}

// dispatchAll takes a new session after every so many events.
func dispatchAll(b *testing.B, begin func() *session.Session, every int) {
	ctx, s := b.Context(), begin()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i > 0 && i%every == 0 {
			s = begin()
		}
		_, _ = s.Dispatch(ctx, analysed{"a.go", 1})
	}
}

// filled has a slice of n items.
func filled(b *testing.B, n int) *session.Session {
	s := session.New(nil)
	session.Append(s, func(e analysed) analysed { return e })
	for range n {
		dispatch(b, b.Context(), s, analysed{"a.go", 1})
	}
	return s
}

// BenchmarkSnapshot keeps the state of a slice of 10,000 items. "copying" keeps a copy of the list, and
// "as JSON" writes it, which is how a state is kept that others may change.
func BenchmarkSnapshot(b *testing.B) {
	s := filled(b, 10_000)
	items := slices.Collect(session.Query[analysed](s).All())
	b.Run("10000 items", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = s.Snapshot()
		}
	})
	b.Run("copying, 10000 items", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = slices.Clone(items)
		}
	})
	b.Run("as JSON, 10000 items", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(items); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkIncrements has 8 goroutines add 5,000 times each, and reports how many additions are left.
// "read and write back" is a state that is safe to read and to write, but not to change.
func BenchmarkIncrements(b *testing.B) {
	b.Run("a reducer", func(b *testing.B) {
		increments(b, func() (add func(), sum func() int) {
			s := session.New(nil)
			session.Reduce(s, func(n int, e analysed) int { return n + e.Issues })
			add = func() { _, _ = s.Dispatch(b.Context(), analysed{Issues: 1}) }
			return add, func() int { n, _ := session.Query[int](s).Latest(); return n }
		})
	})
	b.Run("read and write back", func(b *testing.B) {
		increments(b, func() (add func(), sum func() int) {
			var n atomic.Int64
			return func() { n.Store(n.Load() + 1) }, func() int { return int(n.Load()) }
		})
	})
}

func increments(b *testing.B, begin func() (add func(), sum func() int)) {
	kept := 0
	for b.Loop() {
		add, sum := begin()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5_000 {
					add()
				}
			})
		}
		wg.Wait()
		kept += sum()
	}
	b.ReportMetric(float64(kept)/float64(b.N), "kept/40000")
}

func BenchmarkRestore(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		b.Run(fmt.Sprint(n, " items"), func(b *testing.B) {
			s := filled(b, n)
			snap := s.Snapshot()
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Restore(b.Context(), snap); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRollback takes back a call that was alone.
func BenchmarkRollback(b *testing.B) {
	for _, n := range []int{10, 100_010} { // which fill the last leaf of a vector alike
		b.Run(fmt.Sprint(n, " items"), func(b *testing.B) {
			s := filled(b, n)
			b.ReportAllocs()
			for b.Loop() {
				in, tx := s.Begin(b.Context(), "toolu_1")
				_, _ = s.Dispatch(in, analysed{"b.go", 1})
				if err := tx.Rollback(""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkQuery(b *testing.B) {
	s := filled(b, 10_000)
	b.Run("latest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = session.Query[analysed](s).Latest()
		}
	})
	b.Run("all of 10000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for range session.Query[analysed](s).All() {
			}
		}
	})
	b.Run("where, of 10000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for range session.Query[analysed](s).Where(func(a analysed) bool { return a.Issues > 1 }) {
			}
		}
	})
}

// BenchmarkOpen100k opens a log of 100,000 events and asks for a slice of all of them.
func BenchmarkOpen100k(b *testing.B) {
	store := newDisk()
	s, err := session.Open(store, nil)
	if err != nil {
		b.Fatal(err)
	}
	count := func(s *session.Session) int {
		session.Reduce(s, func(n int, e analysed) int { return n + e.Issues })
		n, _ := session.Query[int](s).Latest()
		return n
	}
	count(s)
	for range 100_000 {
		dispatch(b, b.Context(), s, analysed{"a.go", 1})
	}
	_ = s.Close()
	for name, forget := range map[string]bool{"checkpoint": false, "no checkpoint": true} {
		b.Run(name, func(b *testing.B) {
			store.forget = forget
			b.ReportAllocs()
			for b.Loop() {
				s, err := session.Open(store, nil)
				if err != nil || count(s) != 100_000 {
					b.Fatal(count(s), err)
				}
			}
		})
	}
}

func BenchmarkAfter100k(b *testing.B) {
	s := filled(b, 100_000)
	_ = s.Close() // the reader comes to its end
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range s.After(b.Context(), 0) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
