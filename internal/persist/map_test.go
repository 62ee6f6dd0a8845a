// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// hashes are ways to hash, from good to hopeless: the poor ones make keys meet at every level.
var hashes = map[string]func(int) uint64{
	"real":             func(k int) uint64 { return maphash.Comparable(seed, k) },
	"all the same":     func(int) uint64 { return 1 },
	"few":              func(k int) uint64 { return uint64(k % 3) },
	"low bits":         func(k int) uint64 { return uint64(k % 40) },
	"highest bits":     func(k int) uint64 { return uint64(k) << 58 },
	"the topmost bit":  func(k int) uint64 { return uint64(k) << 63 },
	"shared beginning": func(k int) uint64 { return uint64(k)<<30 | 12345 },
}

func checkMap(t tb, m Map[int, int], hash func(int) uint64, want map[int]int) {
	t.Helper()
	if got := m.Len(); got != len(want) {
		t.Errorf("Len() = %d, want %d", got, len(want))
	}
	if diff := cmp.Diff(want, maps.Collect(m.All())); diff != "" && len(want) > 0 {
		t.Errorf("All() (-want +got):\n%s", diff)
	}
	seen := 0
	for range m.All() {
		seen++
	}
	if seen != len(want) {
		t.Errorf("All() yields %d times, want %d", seen, len(want))
	}
	for key, value := range want {
		if got, ok := m.get(hash(key), key); !ok || got != value {
			t.Errorf("get(%d) = %d, %t, want %d", key, got, ok, value)
		}
	}
}

func TestMap_NoVersionEverChanges(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { changeMaps(t, hash) })
		})
	}
}

func changeMaps(t *rapid.T, hash func(int) uint64) {
	type version struct {
		m     Map[int, int]
		model map[int]int
	}
	versions := []version{{}}
	keys := rapid.SampledFrom([]int{4, 50, 500}).Draw(t, "keys")
	for step := range rapid.IntRange(1, testkit.Size(50, 100)).Draw(t, "steps") {
		// Most steps go on from the newest version, so that maps grow.
		from := max(0, len(versions)-1-rapid.IntRange(0, 6).Draw(t, "back")/3)
		v := version{versions[from].m, map[int]int{}}
		maps.Copy(v.model, versions[from].model)
		key := rapid.IntRange(0, keys-1).Draw(t, "key")
		v.m = v.m.set(hash(key), key, step)
		v.model[key] = step
		if got, ok := v.m.get(hash(key), key); got != step || !ok {
			t.Errorf("get(%d) = %d, %t after the change, want %d", key, got, ok, step)
		}
		versions = append(versions, v)
	}
	for _, v := range versions {
		checkMap(t, v.m, hash, v.model)
	}
}

func TestMap_KeepsManyKeys(t *testing.T) {
	const keys = 5000
	var full Map[string, int]
	for i := range keys {
		full = full.Set(fmt.Sprint("key ", i), i)
	}
	for i := range keys {
		if got, ok := full.Get(fmt.Sprint("key ", i)); !ok || got != i {
			t.Fatalf("Get(key %d) = %d, %t", i, got, ok)
		}
	}
	if got := full.Len(); got != keys {
		t.Errorf("full: Len() = %d, want %d", got, keys)
	}
}

func TestMap_EmptyCanBeRead(t *testing.T) {
	var m Map[string, int]
	if got, ok := m.Get("a"); ok || got != 0 {
		t.Errorf("Get = %d, %t, want 0, false", got, ok)
	}
	for key := range m.All() {
		t.Errorf("All() yields %q", key)
	}
}

func TestMap_IterationStopsEarly(t *testing.T) {
	for name, hash := range hashes {
		var m Map[int, int]
		for k := range 100 {
			m = m.set(hash(k), k, k)
		}
		seen := 0
		for range m.All() {
			if seen++; seen == 37 {
				break
			}
		}
		if seen != 37 {
			t.Errorf("hash %s: saw %d keys, want 37", name, seen)
		}
	}
}

func TestMap_NaNKeysBehaveAsInAGoMap(t *testing.T) {
	var m Map[float64, int]
	for i := range 100 {
		m = m.Set(math.NaN(), i).Set(float64(i), i)
	}
	if got, want := m.Len(), 200; got != want {
		t.Errorf("Len() = %d, want %d", got, want)
	}
	if _, ok := m.Get(math.NaN()); ok {
		t.Error("a NaN was found")
	}
}

func TestMap_ClonesChangeWhileOldVersionsAreRead(t *testing.T) {
	hash := hashes["real"]
	var shared Map[int, int]
	want := map[int]int{}
	for k := range 300 {
		shared, want[k] = shared.Set(k, k), k
	}
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			m := shared
			for k := range 300 {
				m = m.Set(k, -c).Set(1000+k, c)
			}
			if got, want := m.Len(), 300+300; got != want {
				t.Errorf("clone: Len() = %d, want %d", got, want)
			}
		})
		wg.Go(func() {
			for range 5 {
				checkMap(t, shared, hash, want)
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
}

func benchmarkMap(n int) Map[int, int] {
	var m Map[int, int]
	for k := range n {
		m = m.Set(k, k)
	}
	return m
}

func BenchmarkMapGet(b *testing.B) {
	for _, size := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m := benchmarkMap(size)
			for k := 0; b.Loop(); k++ {
				_, _ = m.Get(k * 7919 % size)
			}
		})
	}
}

func BenchmarkMapSet(b *testing.B) {
	for _, size := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			m := benchmarkMap(size)
			for k := 0; b.Loop(); k++ {
				m = m.Set(k*7919%size, k)
			}
		})
	}
}

func BenchmarkMapAll100k(b *testing.B) {
	m := benchmarkMap(100_000)
	for b.Loop() {
		sum := 0
		for _, value := range m.All() {
			sum += value
		}
	}
}
