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

	"github.com/drover-agents/drover/internal/testsize"
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
	if m.root != nil {
		checkShape(t, m.root, true)
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

// checkShape finds nodes that deleting should have removed.
func checkShape(t tb, n *mapNode[int, int], isRoot bool) {
	t.Helper()
	if len(n.slots) == 0 || !isRoot && len(n.slots) == 1 && n.slots[0].leaf != nil {
		t.Errorf("a node of %d slots is left over", len(n.slots))
	}
	for _, slot := range n.slots {
		if slot.node != nil {
			checkShape(t, slot.node, false)
		}
	}
}

func TestNoVersionOfAMapEverChanges(t *testing.T) {
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
	for step := range rapid.IntRange(1, testsize.Of(50, 200)).Draw(t, "steps") {
		// Most steps go on from the newest version, so that maps grow.
		from := max(0, len(versions)-1-rapid.IntRange(0, 6).Draw(t, "back")/3)
		v := version{versions[from].m, map[int]int{}}
		maps.Copy(v.model, versions[from].model)
		key := rapid.IntRange(0, keys-1).Draw(t, "key")
		if rapid.IntRange(0, 2).Draw(t, "op") == 0 {
			v.m = v.m.delete(hash(key), key)
			delete(v.model, key)
		} else {
			v.m = v.m.set(hash(key), key, step)
			v.model[key] = step
		}
		want, wantOK := v.model[key]
		if got, ok := v.m.get(hash(key), key); got != want || ok != wantOK {
			t.Errorf("get(%d) = %d, %t after the change, want %d, %t", key, got, ok, want, wantOK)
		}
		versions = append(versions, v)
	}
	for _, v := range versions {
		checkMap(t, v.m, hash, v.model)
	}
}

func TestAMapKeepsManyKeysAndLosesThemAgain(t *testing.T) {
	const keys = 5000
	var full Map[string, int]
	for i := range keys {
		full = full.Set(fmt.Sprint("key ", i), i)
	}
	empty := full
	for i := range keys {
		if got, ok := full.Get(fmt.Sprint("key ", i)); !ok || got != i {
			t.Fatalf("Get(key %d) = %d, %t", i, got, ok)
		}
		empty = empty.Delete(fmt.Sprint("key ", i))
	}
	if got := full.Len(); got != keys {
		t.Errorf("full: Len() = %d, want %d", got, keys)
	}
	if empty != (Map[string, int]{}) {
		t.Errorf("all keys deleted: %+v, want the zero value", empty)
	}
}

func TestAnEmptyMapCanBeReadAndDeletedFrom(t *testing.T) {
	var m Map[string, int]
	if got, ok := m.Delete("a").Get("a"); ok || got != 0 {
		t.Errorf("Get = %d, %t, want 0, false", got, ok)
	}
	for key := range m.All() {
		t.Errorf("All() yields %q", key)
	}
}

func TestDeletingWhatIsNotThereReturnsTheSameMap(t *testing.T) {
	for name, hash := range hashes {
		m := Map[int, int]{}.set(hash(1), 1, 1).set(hash(4), 4, 4)
		if got := m.delete(hash(7), 7); got != m {
			t.Errorf("hash %s: a new map was made", name)
		}
	}
}

func TestReadingAMapStopsWhenAsked(t *testing.T) {
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

func TestKeysThatDifferFromThemselvesBehaveAsInAGoMap(t *testing.T) {
	var m Map[float64, int]
	for i := range 100 {
		m = m.Set(math.NaN(), i).Set(float64(i), i)
	}
	if got, want := m.Delete(math.NaN()).Len(), 200; got != want {
		t.Errorf("Len() = %d, want %d", got, want)
	}
	if _, ok := m.Get(math.NaN()); ok {
		t.Error("a NaN was found")
	}
}

func TestClonesOfAMapAreChangedAtOnceWhileOldVersionsAreRead(t *testing.T) {
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
				m = m.Set(k, -c).Set(1000+k, c).Delete(k / 2)
			}
			if got, want := m.Len(), 300+150; got != want {
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
