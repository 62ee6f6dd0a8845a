// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func vectorOf(n int) Vector[int] {
	var v Vector[int]
	for i := range n {
		v = v.Append(i)
	}
	return v
}

// upTo is what vectorOf(n) must hold.
func upTo(n int) []int {
	items := make([]int, n)
	for i := range items {
		items[i] = i
	}
	return items
}

// tb is what checks need of a test and of a property test. Checks run in any goroutine, so they
// must not call Fatalf.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkVector compares by every way to read.
func checkVector(t tb, name string, v Vector[int], want []int) {
	t.Helper()
	if got := v.Len(); got != len(want) {
		t.Errorf("%s: Len() = %d, want %d", name, got, len(want))
		return
	}
	if got := slices.AppendSeq([]int{}, v.All()); !slices.Equal(got, want) {
		t.Errorf("%s: All() differs (-want +got):\n%s", name, cmp.Diff(want, got))
		return
	}
	for i, item := range want {
		if got := v.At(i); got != item {
			t.Errorf("%s: At(%d) = %d, want %d", name, i, got, item)
			return
		}
	}
	last, ok := v.Last()
	if ok != (len(want) > 0) || ok && last != want[len(want)-1] {
		t.Errorf("%s: Last() = %d, %t with %d items", name, last, ok, len(want))
		return
	}
}

func TestVector_NoVersionEverChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type version struct {
			vector Vector[int]
			model  []int
		}
		versions := []version{{}}
		next := 0 // every item is another, so that none can pass for its neighbour
		for range rapid.IntRange(1, testkit.Size(25, 40)).Draw(t, "steps") {
			v := versions[rapid.IntRange(0, len(versions)-1).Draw(t, "version")]
			n := len(v.model)
			switch op := rapid.SampledFrom([]string{"append", "append one", "set", "take"}).Draw(t, "op"); {
			case op == "append":
				many := rapid.SampledFrom([]int{2, 31, 32, 33, 500, 1056}).Draw(t, "many")
				v.model = slices.Clone(v.model)
				for range many {
					next++
					v = version{v.vector.Append(next), append(v.model, next)}
				}
			case op == "append one":
				next++
				v = version{v.vector.Append(next), append(slices.Clone(v.model), next)}
			case op == "take":
				n = rapid.IntRange(0, n).Draw(t, "n")
				v = version{v.vector.Take(n), v.model[:n:n]}
			case n > 0:
				next++
				i := rapid.IntRange(0, n-1).Draw(t, "i")
				v = version{v.vector.Set(i, next), slices.Clone(v.model)}
				v.model[i] = next
			}
			versions = append(versions, v)
		}
		for _, v := range versions {
			checkVector(t, "at the end", v.vector, v.model)
		}
	})
}

// The sizes where a leaf, a branch or a whole level begins, and their neighbours.
func vectorEdges() []int {
	var edges []int
	for _, edge := range []int{0, 32, 64, 1024, 1056, 2048, 32768, 32800} {
		for n := max(0, edge-1); n <= edge+1; n++ {
			edges = append(edges, n)
		}
	}
	return edges
}

func TestVector_CutAndExtendedAtEveryEdge(t *testing.T) {
	const size = 33_900
	whole, want := vectorOf(size), upTo(size)
	for _, n := range vectorEdges() {
		cut := whole.Take(n)
		longer := cut
		for i := range 40 {
			longer = longer.Append(-i)
		}
		for i := range 40 {
			if got := longer.At(n + i); got != -i {
				t.Fatalf("Take(%d) and 40 appends: At(%d) = %d, want %d", n, n+i, got, -i)
			}
		}
		checkVector(t, "cut", cut, want[:n])
		checkVector(t, "cut again", longer.Take(n), want[:n])
	}
	checkVector(t, "whole", whole, want)
}

func TestVector_SetChangesOnlyOneItem(t *testing.T) {
	const size = 33_900
	whole, want := vectorOf(size), upTo(size)
	changed, changedWant := whole, slices.Clone(want)
	for _, i := range append(vectorEdges(), size-1) {
		changed, changedWant[i] = changed.Set(i, -1), -1
	}
	checkVector(t, "changed", changed, changedWant)
	checkVector(t, "changed and appended to", changed.Append(7), append(slices.Clone(changedWant), 7))
	checkVector(t, "whole", whole, want)
}

func TestVector_IterationFromAnyItem(t *testing.T) {
	v := vectorOf(100)
	for _, from := range []int{0, 1, 31, 32, 95, 96, 99, 100, 101} {
		want := upTo(100)[min(from, 100):]
		got := []int{}
		for i, item := range v.From(from) {
			if i != item {
				t.Errorf("From(%d) gives item %d the index %d", from, item, i)
			}
			got = append(got, item)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("From(%d) (-want +got):\n%s", from, diff)
		}
	}
}

func TestVector_IterationStopsEarly(t *testing.T) {
	seen := 0
	for item := range vectorOf(100).All() {
		if seen++; item == 40 {
			break
		}
	}
	if want := 41; seen != want {
		t.Errorf("saw %d items, want %d", seen, want)
	}
}

func TestVector_PanicsOutOfRange(t *testing.T) {
	// The tail of the short one has cells of a longer version, which it must not show.
	long := vectorOf(40)
	short := long.Take(35)
	for name, do := range map[string]func(){
		"At below":         func() { short.At(-1) },
		"At the length":    func() { short.At(35) },
		"Set the length":   func() { short.Set(35, 0) },
		"Set below":        func() { short.Set(-1, 0) },
		"Take too many":    func() { short.Take(36) },
		"Take below":       func() { short.Take(-1) },
		"From below":       func() { short.From(-1) },
		"At in empty":      func() { Vector[int]{}.At(0) },
		"Take from an end": func() { Vector[int]{}.Take(1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			do()
		})
	}
}

func TestVector_AppendAllocatesOnlyNewLeaves(t *testing.T) {
	v := vectorOf(1 << 15)
	allocs := testing.AllocsPerRun(1000, func() {
		for i := range 32 {
			v = v.Append(i)
		}
	})
	if allocs >= 3 { // a block and its cells
		t.Errorf("32 appends allocate %v times, want less than 3", allocs)
	}
}

func TestVector_ShortTakesLittleMemory(t *testing.T) {
	type large [1 << 10]byte
	kept := make([]Vector[large], 100)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range kept {
		kept[i] = kept[i].Append(large{})
	}
	runtime.ReadMemStats(&after)
	if taken := (after.TotalAlloc - before.TotalAlloc) / 100; taken > 2<<10 {
		t.Errorf("a vector of one item of 1 kB takes %d bytes", taken)
	}
}

func TestVector_ClonesExtendWhileOldVersionsAreRead(t *testing.T) {
	const base, more, clones = 32*32 - 5, 200, 8
	shared, want := vectorOf(base), upTo(base)
	var ends [clones]Vector[int]
	var wg sync.WaitGroup
	for c := range clones {
		wg.Go(func() {
			v := shared
			for i := range more {
				v = v.Append(c*more + i)
				if i%50 == 0 {
					v = v.Set(base/2, c)
					runtime.Gosched()
				}
			}
			ends[c] = v
		})
		wg.Go(func() {
			for range 10 {
				checkVector(t, "shared", shared.Take(base-c), want[:base-c])
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	for c, v := range ends {
		wantEnd := slices.Clone(want)
		wantEnd[base/2] = c
		for i := range more {
			wantEnd = append(wantEnd, c*more+i)
		}
		checkVector(t, "clone", v, wantEnd)
	}
	checkVector(t, "shared", shared, want)
}

// One goroutine writes and hands every version on, as an order lock does; readers lag behind.
func TestVector_OldVersionsAreReadWhileTheNewestGrows(t *testing.T) {
	const size, readers = 3000, 4
	versions := make([]chan Vector[int], readers)
	var wg sync.WaitGroup
	for r := range readers {
		versions[r] = make(chan Vector[int], 64)
		wg.Go(func() {
			for v := range versions[r] {
				checkVector(t, "version", v, upTo(v.Len()))
			}
		})
	}
	var v Vector[int]
	for i := range size {
		v = v.Append(i)
		if i%17 == 0 {
			versions[i%readers] <- v
		}
	}
	for _, c := range versions {
		close(c)
	}
	wg.Wait()
}

func BenchmarkVectorAppend(b *testing.B) {
	b.ReportAllocs()
	var v Vector[int]
	for b.Loop() {
		v = v.Append(1)
	}
}

// The dearest way to append: every append follows a rollback.
func BenchmarkVectorTakeAndAppend(b *testing.B) {
	b.ReportAllocs()
	v := vectorOf(100_000)
	for b.Loop() {
		v = v.Take(v.Len() - 1).Append(1)
	}
}

func BenchmarkVectorAt(b *testing.B) {
	v := vectorOf(100_000)
	var indexes [1024]int
	for i := range indexes {
		indexes[i] = rand.IntN(v.Len())
	}
	for i := 0; b.Loop(); i++ {
		_ = v.At(indexes[i%len(indexes)])
	}
}

func BenchmarkVectorSet(b *testing.B) {
	b.ReportAllocs()
	v := vectorOf(100_000)
	for i := 0; b.Loop(); i++ {
		v = v.Set(i*7919%v.Len(), i)
	}
}

func BenchmarkVectorAll100k(b *testing.B) {
	v := vectorOf(100_000)
	for b.Loop() {
		sum := 0
		for item := range v.All() {
			sum += item
		}
	}
}
