// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/drover-agents/drover/session"
)

// faults are stores that break one contract each, by what they do wrong. Only the last one can be opened
// again, and is then empty.
var faults = []struct {
	name, contract string
	store          func(good *session.MemoryStore) session.Store
	reopens        bool
}{
	{"begins twice", "log is begun once and first", func(m *session.MemoryStore) session.Store { return beginsTwice{m} }, false},
	{"loses the last", "records come back in order and unchanged", func(m *session.MemoryStore) session.Store { return losesLast{m} }, false},
	{"starts over", "readers have a position", func(m *session.MemoryStore) session.Store { return startsOver{m} }, false},
	{"swallows errors", "gaps and repetitions are refused", func(m *session.MemoryStore) session.Store { return swallows{m} }, false},
	{"keeps a part", "append keeps all or none", func(m *session.MemoryStore) session.Store { return keepsPart{m} }, false},
	{"keeps the buffer", "caller may reuse its buffers", func(m *session.MemoryStore) session.Store { return &keepsBuffer{MemoryStore: m} }, false},
	{"follows", "reader sees what was there when it was called", func(m *session.MemoryStore) session.Store { return follows{m} }, false},
	{"has an old checkpoint", "last checkpoint counts", func(m *session.MemoryStore) session.Store { return &oldCheckpoint{MemoryStore: m} }, false},
	{"takes any checkpoint", "checkpoint beyond the log is refused", func(m *session.MemoryStore) session.Store { return anyCheckpoint{m} }, false},
	{"never closes", "closed store says so", func(m *session.MemoryStore) session.Store { return neverCloses{m} }, false},
	{"forgets", "reopened store has everything", func(m *session.MemoryStore) session.Store { return m }, true},
}

type beginsTwice struct{ *session.MemoryStore }

func (s beginsTwice) Init(h session.Head) error { _ = s.MemoryStore.Init(h); return nil }

type losesLast struct{ *session.MemoryStore }

func (s losesLast) Records(after int64) iter.Seq2[session.Record, error] {
	all, last := s.MemoryStore.Records(after), s.Last()
	return func(yield func(session.Record, error) bool) {
		for r, err := range all {
			if r.Pos == last || !yield(r, err) {
				return
			}
		}
	}
}

type startsOver struct{ *session.MemoryStore }

func (s startsOver) Records(int64) iter.Seq2[session.Record, error] { return s.MemoryStore.Records(0) }

type swallows struct{ *session.MemoryStore }

func (s swallows) Append(r []session.Record) error { _ = s.MemoryStore.Append(r); return nil }

type keepsPart struct{ *session.MemoryStore }

func (s keepsPart) Append(list []session.Record) error {
	for _, r := range list {
		if err := s.MemoryStore.Append([]session.Record{r}); err != nil {
			return err
		}
	}
	return nil
}

// keepsBuffer is right about everything but the buffers, also when it is read meanwhile.
type keepsBuffer struct {
	*session.MemoryStore
	mu   sync.Mutex
	list []session.Record
}

func (s *keepsBuffer) Append(list []session.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.MemoryStore.Append(list)
	if err == nil {
		s.list = append(s.list, list...)
	}
	return err
}

// at waits for an Append that is under way.
func (s *keepsBuffer) at(pos int64) session.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[pos-1]
}

func (s *keepsBuffer) Records(after int64) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for r, err := range s.MemoryStore.Records(after) {
			if err == nil {
				r = s.at(r.Pos)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

type follows struct{ *session.MemoryStore }

func (s follows) Records(after int64) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) { s.MemoryStore.Records(after)(yield) }
}

type oldCheckpoint struct {
	*session.MemoryStore
	saved bool
}

func (s *oldCheckpoint) SaveCheckpoint(c session.Checkpoint) error {
	if s.saved {
		return nil
	}
	s.saved = true
	return s.MemoryStore.SaveCheckpoint(c)
}

type anyCheckpoint struct{ *session.MemoryStore }

func (s anyCheckpoint) SaveCheckpoint(c session.Checkpoint) error {
	_ = s.MemoryStore.SaveCheckpoint(c)
	return nil
}

type neverCloses struct{ *session.MemoryStore }

func (neverCloses) Close() error { return nil }

const childRole = "DROVER_TEST_BROKEN_STORES"

// A suite is worth what it finds. Tests that fail need a process of their own.
func TestSuite_FindsBrokenStores(t *testing.T) {
	if os.Getenv(childRole) != "" {
		runBroken(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSuite_FindsBrokenStores$", "-test.v", "-test.timeout=1m")
	cmd.Env = []string{childRole + "=1", "GORACE=" + os.Getenv("GORACE")}
	out, err := cmd.CombinedOutput()
	if _, ok := err.(*exec.ExitError); !ok {
		t.Fatalf("the suite found nothing wrong (%v):\n%s", err, out)
	}
	if strings.Contains(string(out), "panic:") {
		t.Fatalf("the suite did not come to its end:\n%s", out)
	}
	for _, f := range faults {
		failed := "--- FAIL: TestSuite_FindsBrokenStores/" + strings.ReplaceAll(f.name+"/"+f.contract, " ", "_") + " "
		if !strings.Contains(string(out), failed) {
			t.Errorf("a store that %s passes the contract %q", f.name, f.contract)
		}
	}
	if strings.Contains(string(out), "--- FAIL: TestSuite_FindsBrokenStores/good") {
		t.Errorf("a good store fails:\n%s", out)
	}
}

func runBroken(t *testing.T) {
	t.Run("good", func(t *testing.T) {
		Run(t, func(*testing.T) (session.Store, func() session.Store) { return session.NewMemoryStore(), nil })
	})
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			Run(t, func(*testing.T) (session.Store, func() session.Store) {
				if f.reopens {
					return f.store(session.NewMemoryStore()), func() session.Store { return session.NewMemoryStore() }
				}
				return f.store(session.NewMemoryStore()), nil
			})
		})
	}
}
