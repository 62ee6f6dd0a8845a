// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type number int

func (n number) Compare(other number) int { return cmp.Compare(n, other) }

func TestSorted_NoVersionEverChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type version struct {
			s     Sorted[number, int]
			model map[number]int
		}
		versions := []version{{model: map[number]int{}}}
		for step := range rapid.IntRange(1, 80).Draw(t, "steps") {
			from := versions[max(0, len(versions)-1-rapid.IntRange(0, 6).Draw(t, "back")/3)]
			v := version{from.s, maps.Clone(from.model)}
			key := number(rapid.IntRange(0, 30).Draw(t, "key"))
			if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
				v.s = v.s.Delete(key)
				delete(v.model, key)
			} else {
				v.s = v.s.Set(key, step)
				v.model[key] = step
			}
			versions = append(versions, v)
		}
		for _, v := range versions {
			checkSorted(t, v.s, v.model)
		}
	})
}

func checkSorted(t *rapid.T, s Sorted[number, int], want map[number]int) {
	t.Helper()
	var keys []number
	for key, value := range s.All() {
		keys = append(keys, key)
		if got, ok := s.Get(key); !ok || got != value || got != want[key] {
			t.Errorf("Get(%d) = %d, %t, want %d", key, got, ok, want[key])
		}
	}
	if diff := gocmp.Diff(slices.Sorted(maps.Keys(want)), keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if got := s.Len(); got != len(want) {
		t.Errorf("Len() = %d, want %d", got, len(want))
	}
	if _, ok := s.Get(1000); ok {
		t.Error("a key was found that was not set")
	}
}

func TestSorted_ShapeDependsOnlyOnKeys(t *testing.T) {
	var up, down Sorted[number, int]
	for i := range number(500) {
		up, down = up.Set(i, int(i)), down.Set(499-i, int(499-i))
	}
	down = down.Set(7000, 1).Delete(7000)
	if !reflect.DeepEqual(up, down) {
		t.Error("two ways to the same keys gave two shapes")
	}
	if up.Same(down) || !up.Same(up.Delete(7000)) {
		t.Error("Same must distinguish versions, and deleting what is not there must make none")
	}
}

func TestSorted_IterationStopsEarly(t *testing.T) {
	var s Sorted[number, int]
	for i := range number(50) {
		s = s.Set(i, 0)
	}
	seen := 0
	for range s.All() {
		if seen++; seen == 17 {
			break
		}
	}
	if seen != 17 {
		t.Errorf("saw %d keys, want 17", seen)
	}
}
