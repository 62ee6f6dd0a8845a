// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/transcript"
)

// A scriptStore records the appends and answers them by a function.
type scriptStore struct {
	mu      sync.Mutex
	appends []string // "key: entry entry @time"
	answer  func(ctx context.Context, n int) error
	start   time.Time
}

func (s *scriptStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	s.mu.Lock()
	var list []string
	for _, e := range entries {
		list = append(list, string(e))
	}
	n := len(s.appends)
	s.appends = append(s.appends, fmt.Sprintf("%s: %.60s @%v", key.SessionID[:1]+key.Subpath, strings.Join(list, " "), time.Since(s.start)))
	s.mu.Unlock()
	if s.answer == nil {
		return nil
	}
	return s.answer(ctx, n)
}

func (s *scriptStore) Load(context.Context, transcript.Key) ([]json.RawMessage, error) {
	return nil, nil
}

func (s *scriptStore) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.appends...)
}

type mirrorFixture struct {
	*transcript.Mirror
	store  *scriptStore
	mu     sync.Mutex
	errors []error
	keys   []transcript.Key
}

const mirrorDir = "/config"

func file(name string) string {
	path, _ := filepath.Abs(filepath.Join(mirrorDir, "projects", "-p", name))
	return path
}

func newMirror(t *testing.T, opts transcript.MirrorOptions, answer func(ctx context.Context, n int) error) *mirrorFixture {
	t.Helper()
	f := &mirrorFixture{store: &scriptStore{answer: answer, start: time.Now()}}
	opts.Dir = mirrorDir
	opts.OnError = func(key transcript.Key, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.errors, f.keys = append(f.errors, err), append(f.keys, key)
	}
	m, err := transcript.NewMirror(f.store, opts)
	if err != nil {
		t.Fatal(err)
	}
	f.Mirror = m
	t.Cleanup(func() { m.Close(context.Background()) })
	return f
}

func (f *mirrorFixture) want(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.store.seen()); diff != "" {
		t.Errorf("appends (-want +got):\n%s", diff)
	}
}

func (f *mirrorFixture) lost(t *testing.T, want int, is error) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errors) != want {
		t.Fatalf("reported %v, want %d", f.errors, want)
	}
	for _, err := range f.errors {
		if !errors.Is(err, is) {
			t.Errorf("reported %v, want %v", err, is)
		}
	}
}

func TestMirror_FlushesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMirror(t, transcript.MirrorOptions{}, nil)
		f.Add(file(id1+".jsonl"), raw(`{"n":1}`, `{"n":2}`))
		f.Add(file(id2+".jsonl"), raw(`{"n":3}`))
		f.Add(file(id1+"/subagents/agent-a.jsonl"), raw(`{"type":"agent_metadata"}`))
		f.Add(file(id1+".jsonl"), raw(`{"n":4}`))
		f.Add(file(id1+".jsonl"), nil)
		synctest.Wait()
		f.want(t) // nothing before there is a reason
		if err := f.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{`1: {"n":1} {"n":2} {"n":4} @0s`, `2: {"n":3} @0s`, `1subagents/agent-a: {"type":"agent_metadata"} @0s`}
		f.want(t, want...)
		if err := f.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.want(t, want...) // no append of nothing
		f.Add(file(id1+".jsonl"), raw(`{"n":5}`))
		if err := f.Close(t.Context()); err != nil { // the stream may end early
			t.Fatal(err)
		}
		f.want(t, append(want, `1: {"n":5} @0s`)...)
		f.lost(t, 0, nil)
		f.Add(file(id1+".jsonl"), raw(`{"n":6}`))
		f.lost(t, 1, transcript.ErrMirrorClosed)
		if err := errors.Join(f.Close(t.Context()), f.Flush(t.Context())); err != nil {
			t.Errorf("second Close and Flush = %v", err)
		}
	})
}

func TestMirror_Retries(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name   string
		answer func(ctx context.Context, n int) error
		at     []string
		lost   int
		is     error
	}{
		{"second attempt", func(_ context.Context, n int) error { return map[bool]error{true: broken}[n < 1] }, []string{"0s", "200ms"}, 0, nil},
		{"third attempt", func(_ context.Context, n int) error { return map[bool]error{true: broken}[n < 2] }, []string{"0s", "200ms", "1s"}, 0, nil},
		{"given up", func(context.Context, int) error { return broken }, []string{"0s", "200ms", "1s"}, 1, broken},
		{"not after a timeout", func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }, []string{"0s"}, 1, context.DeadlineExceeded},
		{"not after a timeout in other words", func(ctx context.Context, _ int) error { <-ctx.Done(); return broken }, []string{"0s"}, 1, context.DeadlineExceeded},
		{"panic", func(context.Context, int) error { panic("store") }, []string{"0s", "200ms", "1s"}, 1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newMirror(t, transcript.MirrorOptions{}, tt.answer)
				f.Add(file(id1+".jsonl"), raw(`{}`))
				begin := time.Now()
				if err := f.Flush(context.Background()); err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, at := range tt.at {
					want = append(want, "1: {} @"+at)
				}
				f.want(t, want...)
				if tt.name == "panic" {
					if len(f.errors) != 1 {
						t.Errorf("reported %v, want one", f.errors)
					}
				} else {
					f.lost(t, tt.lost, tt.is)
				}
				if tt.lost > 0 && f.keys[0].SessionID != id1 {
					t.Errorf("reported key %v", f.keys[0])
				}
				if tt.is == context.DeadlineExceeded && time.Since(begin) != time.Minute {
					t.Errorf("took %v, want the limit of 1m", time.Since(begin))
				}
				// The session goes on after a loss.
				f.store.answer = nil
				f.Add(file(id2+".jsonl"), raw(`{"after":1}`))
				f.Flush(context.Background())
				if got := f.store.seen(); !strings.Contains(got[len(got)-1], "after") {
					t.Errorf("appends = %v, want the next batch", got)
				}
			})
		})
	}
}

func TestMirror_Thresholds(t *testing.T) {
	big := `{"x":"` + strings.Repeat("y", 300<<10) + `"}`
	tests := []struct {
		name   string
		opts   transcript.MirrorOptions
		frames int
		entry  string
		want   int // appends without Flush
	}{
		{"500 entries wait", transcript.MirrorOptions{}, 500, `{}`, 0},
		{"501 do not", transcript.MirrorOptions{}, 501, `{}`, 1},
		{"less than 1 MiB waits", transcript.MirrorOptions{}, 3, big, 0},
		{"more does not", transcript.MirrorOptions{}, 4, big, 1},
		{"eager", transcript.MirrorOptions{Eager: true}, 1, `{}`, 1},
		{"own limit", transcript.MirrorOptions{MaxEntries: 2}, 3, `{}`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newMirror(t, tt.opts, nil)
				for range tt.frames {
					f.Add(file(id1+".jsonl"), raw(tt.entry))
				}
				synctest.Wait()
				if got := len(f.store.seen()); got != tt.want {
					t.Errorf("%d appends, want %d", got, tt.want)
				}
			})
		})
	}
}

func TestMirror_EagerAppendsEachFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMirror(t, transcript.MirrorOptions{Eager: true}, nil)
		for i := range 3 {
			f.Add(file(id1+".jsonl"), raw(fmt.Sprintf(`{"n":%d}`, i)))
			synctest.Wait()
		}
		f.want(t, `1: {"n":0} @0s`, `1: {"n":1} @0s`, `1: {"n":2} @0s`)
	})
}

func TestMirror_KeepsTheProjectOfAResumedSession(t *testing.T) {
	store := transcript.NewMemoryStore()
	m, err := transcript.NewMirror(store, transcript.MirrorOptions{Dir: mirrorDir, ProjectKey: "-home"})
	if err != nil {
		t.Fatal(err)
	}
	m.Add(file(id1+".jsonl"), raw(`{}`))
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := store.Load(t.Context(), transcript.Key{ProjectKey: "-home", SessionID: id1})
	if err != nil || len(got) != 1 {
		t.Errorf("Load = %s, %v, want the entry below the given project", got, err)
	}
}

func TestMirror_DropsFramesOutsideTheFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMirror(t, transcript.MirrorOptions{Eager: true}, nil)
		bad := []string{
			"", "/etc/passwd", "/etc/" + id1 + ".jsonl", file("../../" + id1 + ".jsonl"), file("../" + id1 + ".jsonl"), file("x.jsonl"),
			file(id1 + ".json"), file(id1), file(id1 + "/.jsonl"), file(id1 + "/sub\\x.jsonl"), "projects/-p/" + id1 + ".jsonl",
			mirrorDir + "/projects-evil/-p/" + id1 + ".jsonl", file(id1 + "/a\nb.jsonl"),
		}
		for _, name := range bad {
			f.Add(name, raw(`{}`))
		}
		synctest.Wait()
		f.want(t)
		f.lost(t, len(bad), transcript.ErrOutside)
	})
}

func TestMirror_AddNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMirror(t, transcript.MirrorOptions{Eager: true, MaxPending: 100}, func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		})
		begin := time.Now()
		for range 20 {
			f.Add(file(id1+".jsonl"), raw(`{"ten":123}`))
			synctest.Wait()
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("Add waited %v for a store that hangs", d)
		}
		f.lost(t, 11, transcript.ErrMirrorFull) // nine times eleven bytes fit
	})
}

func TestMirror_CloseIsBounded(t *testing.T) {
	tests := []struct {
		name   string
		answer func(release chan struct{}) func(context.Context, int) error
		want   time.Duration
	}{
		{"store obeys its context", func(chan struct{}) func(context.Context, int) error {
			return func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
		}, 3 * time.Second},
		{"store does not", func(release chan struct{}) func(context.Context, int) error {
			return func(context.Context, int) error { <-release; return nil }
		}, 4 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				f := newMirror(t, transcript.MirrorOptions{}, tt.answer(release))
				f.Add(file(id1+".jsonl"), raw(`{}`))
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				begin := time.Now()
				if err := f.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Flush = %v, want DeadlineExceeded", err)
				}
				err := f.Close(ctx)
				if d := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || d != tt.want {
					t.Errorf("Close = %v after %v, want DeadlineExceeded after %v", err, d, tt.want)
				}
				close(release)
			})
		})
	}
}

func TestMirror_ConcurrentUse(t *testing.T) {
	store := transcript.NewMemoryStore()
	m, err := transcript.NewMirror(store, transcript.MirrorOptions{Dir: mirrorDir, MaxEntries: 3})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				m.Add(file(id1+".jsonl"), raw(fmt.Sprintf(`{"w":%d,"i":%d}`, w, i)))
				if i%10 == 0 {
					m.Flush(t.Context())
				}
			}
		})
	}
	wg.Wait()
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := store.Load(t.Context(), storeKey)
	if err != nil || len(got) != 400 {
		t.Fatalf("Load = %d entries, %v, want 400", len(got), err)
	}
	next := map[int]int{}
	for _, e := range got {
		var l struct{ W, I int }
		if json.Unmarshal(e, &l); l.I != next[l.W] {
			t.Fatalf("entry %s out of order, want %d", e, next[l.W])
		}
		next[l.W]++
	}
}
