// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A historyModel is a history made of full copies.
type historyModel struct {
	history  *history
	now      map[string]*item
	versions map[int64]map[string]*item
	living   map[*item]bool
	serial   uint64
}

func (m *historyModel) item(t *rapid.T, p string) *item {
	m.serial++
	it := &item{Entry: filetree.Entry{
		Path: p, Kind: filetree.File, Size: rapid.Int64Range(0, 2).Draw(t, "size"),
		Stamp: filetree.Stamp{Ino: rapid.Uint64Range(1, 3).Draw(t, "ino"), Links: rapid.Uint64Range(1, 2).Draw(t, "links"), Changed: int64(m.serial)},
	}}
	it.hash[0] = byte(it.Size)
	m.living[it] = true
	return it
}

func (m *historyModel) change(t *rapid.T) {
	p := rapid.SampledFrom([]string{"a", "b", "d/e", "d/f", "d/g/h"}).Draw(t, "path")
	if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
		m.history.set(p, nil)
		delete(m.now, p)
		return
	}
	it := m.item(t, p)
	m.history.set(p, it)
	m.now[p] = it
}

func (m *historyModel) remove(t *rapid.T) {
	dir := rapid.SampledFrom([]string{"d", "d/g", "a"}).Draw(t, "folder")
	m.history.remove(dir)
	maps.DeleteFunc(m.now, func(p string, _ *item) bool { return within(p, dir) })
}

func (m *historyModel) take(*rapid.T) { m.versions[m.history.take()] = maps.Clone(m.now) }

func (m *historyModel) release(t *rapid.T) {
	if id, ok := m.version(t, "release"); ok {
		m.history.release(id)
		delete(m.versions, id)
	}
}

func (m *historyModel) version(t *rapid.T, label string) (int64, bool) {
	if len(m.versions) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.versions))).Draw(t, label), true
}

func (m *historyModel) check(t *rapid.T) {
	m.checkNow(t)
	from, ok := m.version(t, "from")
	if !ok {
		return
	}
	to, _ := m.version(t, "to")
	m.checkVersion(t, from)
	m.checkBetween(t, from, to)
}

// Everything a version or the present can reach is alive, and a folder has the paths that are in it.
func (m *historyModel) checkNow(t *rapid.T) {
	for p, it := range m.now {
		if m.history.now[p] != it || !m.living[it] {
			t.Fatalf("%s is %+v (alive: %v), want %+v", p, m.history.now[p], m.living[it], it)
		}
		if _, in := m.history.below[path.Dir(p)][p]; !in {
			t.Fatalf("%s is not below its folder", p)
		}
		if _, named := m.history.names[it.inode()][p]; named != it.linked() {
			t.Fatalf("%s is among the names of its file: %v, want %v", p, named, it.linked())
		}
	}
	if got, want := len(m.history.now), len(m.now); got != want {
		t.Fatalf("%d items now, want %d", got, want)
	}
	if len(m.versions) == 0 {
		if got, want := len(m.living), len(m.now); got != want {
			t.Fatalf("%d items are kept without a version, want the %d that are there", got, want)
		}
	}
}

func (m *historyModel) checkVersion(t *rapid.T, id int64) {
	got, want := m.history.at(id), m.versions[id]
	if len(got) != len(want) {
		t.Fatalf("version %d has %d items, want %d", id, len(got), len(want))
	}
	for p, it := range want {
		if !alike(got[p], it) || got[p].inode() != it.inode() || !m.living[got[p]] {
			t.Fatalf("version %d has %+v at %s, want %+v", id, got[p], p, it)
		}
	}
}

func (m *historyModel) checkBetween(t *rapid.T, from, to int64) {
	want := map[string]bool{}
	for p, it := range m.versions[from] {
		want[p] = !alike(it, m.versions[to][p])
	}
	for p, it := range m.versions[to] {
		want[p] = !alike(m.versions[from][p], it)
	}
	maps.DeleteFunc(want, func(_ string, differs bool) bool { return !differs })
	got := m.history.between(from, to)
	if g, w := fmt.Sprint(slices.Sorted(maps.Keys(got))), fmt.Sprint(slices.Sorted(maps.Keys(want))); g != w {
		t.Fatalf("between %d and %d: got %s, want %s", from, to, g, w)
	}
	for p, d := range got {
		if !alike(d.from, m.versions[from][p]) || !alike(d.to, m.versions[to][p]) {
			t.Fatalf("between %d and %d: %s has wrong sides", from, to, p)
		}
	}
}

func TestHistory_EqualsFullCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &historyModel{now: map[string]*item{}, versions: map[int64]map[string]*item{}, living: map[*item]bool{}}
		m.history = newHistory(func(it *item) {
			if !m.living[it] {
				t.Fatalf("%s is dropped twice", it.Path)
			}
			delete(m.living, it)
		})
		t.Repeat(map[string]func(*rapid.T){
			"change": m.change, "remove": m.remove, "take": m.take, "release": m.release, "": m.check,
		})
	})
}
