// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A model is what a store shall have: for each content how often it is held.
type model struct {
	s       *Store
	max     int64
	refs    map[Hash]int
	bytes   map[Hash][]byte
	readers []openReader
}

type openReader struct {
	r     io.ReadSeekCloser
	want  []byte
	large bool
}

func (m *model) live() (n int64) {
	for h := range m.refs {
		n += int64(len(m.bytes[h]))
	}
	return n
}

// pinned reports whether a dead large content still takes room, because a reader has it open.
func (m *model) pinned() bool {
	return slices.ContainsFunc(m.readers, func(r openReader) bool { return r.large })
}

func (m *model) put(t *rapid.T, size int) {
	content := someBytes(rapid.Uint64Range(0, 3).Draw(t, "seed"), size)
	h, err := m.s.PutBytes(content)
	_, full := errors.AsType[*FullError](err)
	if err != nil && !full {
		t.Fatal(err)
	}
	hash := Hash(sha256.Sum256(content))
	fits := m.refs[hash] > 0 || size == 0 || m.live()+int64(size) <= m.max
	if err == nil != fits && !m.pinned() {
		t.Fatalf("putting %d bytes to %d of %d: %v", size, m.live(), m.max, err)
	}
	if err == nil && size > 0 {
		if h != hash {
			t.Fatalf("the hash is %v, want %v", h, hash)
		}
		m.refs[h]++
		m.bytes[h] = content
	}
}

func (m *model) pick(t *rapid.T) Hash {
	if len(m.refs) == 0 {
		t.Skip("nothing is kept")
	}
	var all []Hash
	for h := range m.refs {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b Hash) int { return bytes.Compare(a[:], b[:]) })
	return rapid.SampledFrom(all).Draw(t, "content")
}

func (m *model) release(t *rapid.T) {
	h := m.pick(t)
	m.s.Release(h)
	if m.refs[h]--; m.refs[h] == 0 {
		delete(m.refs, h)
	}
}

func (m *model) open(t *rapid.T) {
	h := m.pick(t)
	r, err := m.s.Open(h)
	if err != nil {
		t.Fatal(err)
	}
	m.readers = append(m.readers, openReader{r, m.bytes[h], len(m.bytes[h]) > maxSmall})
}

func (m *model) finish(t *rapid.T) {
	if len(m.readers) == 0 {
		t.Skip("no reader")
	}
	r := m.readers[0]
	m.readers = m.readers[1:]
	if got, err := io.ReadAll(r.r); err != nil || !bytes.Equal(got, r.want) {
		t.Fatalf("read %d bytes, %v, want %d", len(got), err, len(r.want))
	}
	if err := r.r.Close(); err != nil {
		t.Fatal(err)
	}
}

// check reads the small contents, which are moved; large ones are read by open and finish.
func (m *model) check(t *rapid.T) {
	for h := range m.refs {
		if len(m.bytes[h]) > maxSmall {
			continue
		}
		r, err := m.s.Open(h)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, m.bytes[h]) {
			t.Fatalf("read %d bytes, %v, want %d", len(got), err, len(m.bytes[h]))
		}
		r.Close()
	}
	contents, disk := m.s.Usage()
	if want := m.live(); contents != want || disk < want || disk > m.max {
		t.Fatalf("contents %d, disk %d, want %d and at most %d", contents, disk, want, m.max)
	}
}

func TestStore_BehavesLikeAMapWithLimits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{refs: map[Hash]int{}, bytes: map[Hash][]byte{}}
		m.max = rapid.SampledFrom([]int64{3000, 20_000, 3 * maxSmall}).Draw(rt, "max")
		dir, err := os.MkdirTemp(t.TempDir(), "store")
		if err != nil {
			rt.Fatal(err)
		}
		if m.s, err = Open(dir, &Options{MaxBytes: m.max}); err != nil {
			rt.Fatal(err)
		}
		m.s.packSize = rapid.SampledFrom([]int64{2000, 10_000, maxPack}).Draw(rt, "packs of")
		small := func(t *rapid.T) { m.put(t, rapid.IntRange(0, 1500).Draw(t, "size")) }
		rt.Repeat(map[string]func(*rapid.T){
			"put": small, "put more": small, "put the same": func(t *rapid.T) { m.put(t, 700) },
			"put large": func(t *rapid.T) { m.put(t, maxSmall+rapid.IntRange(1, 3).Draw(t, "more")) },
			"retain":    func(t *rapid.T) { h := m.pick(t); m.s.Retain(h); m.refs[h]++ },
			"release":   m.release, "release more": m.release,
			"open": m.open, "finish": m.finish,
			"": m.check,
		})
		for len(m.readers) > 0 {
			m.finish(rt)
		}
		for h, refs := range m.refs {
			for range refs {
				m.s.Release(h)
			}
		}
		checkUsage(t, m.s, 0, 0)
		if err := m.s.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

// Many put, read and release the same few contents while packs are rewritten.
func TestStore_ConcurrentUse(t *testing.T) {
	s := openStore(t, &Options{MaxBytes: 4 * maxSmall})
	s.packSize = 8000
	sizes := []int{0, 10, 1000, 1001, 3000, 5000, maxSmall + 1}
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			dst := fileWith(t, nil)
			for round := range testkit.Size(80, 3000) {
				content := someBytes(uint64(round%3), sizes[(round*7+worker)%len(sizes)])
				f := fileWith(t, content)
				h, _, err := s.Put(context.Background(), f, int64(len(content)))
				f.Close()
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.WriteTo(h, dst); err != nil {
					t.Error(err)
				}
				if got, err := os.ReadFile(dst.Name()); err != nil || !bytes.Equal(got, content) {
					t.Errorf("got %d bytes, %v, want %d", len(got), err, len(content))
				}
				s.Release(h)
			}
		})
	}
	wg.Wait()
	checkUsage(t, s, 0, 0)
}
