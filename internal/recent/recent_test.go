// SPDX-License-Identifier: Apache-2.0

package recent

import "testing"

func TestMap_ForgetsTheOldest(t *testing.T) {
	m := Map[int, string]{Size: 3}
	for k := range 5 {
		m.Put(k, "first")
	}
	m.Put(2, "second") // keeps its age: it is the next to go
	for k, want := range map[int]string{0: "", 1: "", 2: "second", 3: "first", 4: "first"} {
		if got, ok := m.Get(k); got != want || ok != (want != "") {
			t.Errorf("%d: %q (%v), want %q", k, got, ok, want)
		}
	}
	m.Put(5, "first")
	if _, ok := m.Get(2); ok {
		t.Error("2 is remembered, although three came after it")
	}
	if len(m.ring) != 3 || len(m.values) != 3 {
		t.Errorf("%d keys and %d values are kept, want 3", len(m.ring), len(m.values))
	}
}
