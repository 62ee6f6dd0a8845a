// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/advice"
)

var (
	errFull = errors.New("no space left on the test's device")
	errDisk = errors.New("the test's disk failed")
)

// A faultyFile is a log in memory that fails when the test sets an error.
type faultyFile struct {
	mu    sync.Mutex
	text  []byte
	syncs int
	// room is how many bytes can still be written, if it is not negative.
	room                int
	syncErr, truncateIs error
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.NewReader(f.text).ReadAt(p, off)
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.room >= 0 && len(p) > f.room {
		p, err = p[:f.room], errFull
	}
	f.text = append(f.text[:off], p...)
	return len(p), err
}

func (f *faultyFile) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.truncateIs == nil {
		f.text = f.text[:size]
	}
	return f.truncateIs
}

func (f *faultyFile) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs++
	return f.syncErr
}

func (f *faultyFile) Close() error { return nil }

func (f *faultyFile) synced() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs
}

// openFaulty is a begun store on a faulty file.
func openFaulty(t *testing.T, policy SyncPolicy) (*FileStore, *faultyFile) {
	t.Helper()
	s, err := OpenFile(filepath.Join(t.TempDir(), "log.jsonl"), &FileOptions{Sync: policy})
	if err != nil {
		t.Fatal(err)
	}
	f := &faultyFile{room: -1}
	_ = s.f.Close()
	s.f = f
	if err := s.Init(Head{Version: 1, ID: "s-1"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, f
}

func shortRecord(pos int64) Record {
	return Record{pos, json.RawMessage(fmt.Sprintf(`{"pos":%d}`, pos))}
}

func TestAppend_ShortWriteLeavesTheFileUnchanged(t *testing.T) {
	for room := range 30 {
		s, f := openFaulty(t, SyncAlways)
		if err := s.Append([]Record{shortRecord(1)}); err != nil {
			t.Fatal(err)
		}
		before := string(f.text)
		f.room = room
		if err := s.Append([]Record{shortRecord(2), shortRecord(3), shortRecord(4)}); !errors.Is(err, errFull) {
			t.Fatalf("Append with room for %d bytes = %v", room, err)
		}
		if string(f.text) != before || s.Last() != 1 {
			t.Fatalf("room for %d bytes: last is %d, file is %q", room, s.Last(), f.text)
		}
		f.room = -1
		if err := s.Append([]Record{shortRecord(2)}); err != nil || s.Last() != 2 {
			t.Fatalf("Append afterwards = %v, last %d", err, s.Last())
		}
	}
}

// wantBroken checks that the store returns the cause to every caller that would change it.
func wantBroken(t *testing.T, s *FileStore, last int64, cause error) {
	t.Helper()
	for name, err := range map[string]error{
		"Append": s.Append([]Record{shortRecord(last + 1)}), "SaveCheckpoint": s.SaveCheckpoint(Checkpoint{Pos: 1}),
	} {
		if !errors.Is(err, cause) || !strings.Contains(advice.Text(err), s.path) || !strings.Contains(advice.Text(err), "next:") {
			t.Errorf("%s of a broken store = %v", name, err)
		}
	}
	n := int64(0)
	for r, err := range s.Records(0) {
		if n++; err != nil || r.Pos != n {
			t.Errorf("record %d, %v, want %d", r.Pos, err, n)
		}
	}
	if n != last || s.Last() != last {
		t.Errorf("%d records can be read, last is %d, want %d", n, s.Last(), last)
	}
	if err := s.Close(); !errors.Is(err, cause) {
		t.Errorf("Close = %v, want the cause", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close = %v", err)
	}
}

func TestAppend_WriteThatCannotBeUndoneBreaksTheStore(t *testing.T) {
	s, f := openFaulty(t, SyncNever)
	if err := s.Append([]Record{shortRecord(1)}); err != nil {
		t.Fatal(err)
	}
	f.room, f.truncateIs = 5, errDisk
	if err := s.Append([]Record{shortRecord(2)}); !errors.Is(err, errFull) || !errors.Is(err, errDisk) {
		t.Errorf("Append = %v, want both errors", err)
	}
	f.room, f.truncateIs = -1, nil
	wantBroken(t, s, 1, errDisk)
}

func TestAppend_FailedSyncIsNotRetried(t *testing.T) {
	s, f := openFaulty(t, SyncAlways)
	if err := s.Append([]Record{shortRecord(1)}); err != nil {
		t.Fatal(err)
	}
	before, syncs := string(f.text), f.synced()
	f.syncErr = errDisk
	if err := s.Append([]Record{shortRecord(2)}); !errors.Is(err, errDisk) {
		t.Errorf("Append = %v, want the error of the disk", err)
	}
	f.syncErr = nil // a system may succeed the second time
	if string(f.text) != before {
		t.Errorf("file is %q, want %q", f.text, before)
	}
	wantBroken(t, s, 1, errDisk)
	if got := f.synced() - syncs; got != 1 {
		t.Errorf("the file was synced %d times, want once", got)
	}
}

func TestSyncPolicy_AlwaysSyncsEachAppendAndNeverNone(t *testing.T) {
	for policy, want := range map[SyncPolicy]int{SyncAlways: 4, SyncNever: 0} {
		s, f := openFaulty(t, policy)
		for pos := int64(1); pos <= 3; pos++ {
			if err := s.Append([]Record{shortRecord(pos)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil || f.synced() != want {
			t.Errorf("%v: %d syncs, %v, want %d", policy, f.synced(), err, want)
		}
	}
}

func TestSyncPolicy_IntervalSyncsSoonAfterAnAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := openFaulty(t, SyncInterval)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := f.synced(); got != 1 { // the header
			t.Errorf("%d syncs in an idle hour, want 1", got)
		}
		for pos := int64(1); pos <= 10; pos++ {
			if err := s.Append([]Record{shortRecord(pos)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		if got := f.synced(); got != 1 {
			t.Errorf("%d syncs before the interval was over, want 1", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := f.synced(); got != 2 {
			t.Errorf("%d syncs after the interval, want 2", got)
		}
		if err := s.Append([]Record{shortRecord(11)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil || f.synced() != 3 {
			t.Errorf("Close = %v with %d syncs, want one more at once", err, f.synced())
		}
	})
}

func TestSyncPolicy_FailedBackgroundSyncIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := openFaulty(t, SyncInterval)
		f.syncErr = errDisk
		if err := s.Append([]Record{shortRecord(1)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		wantBroken(t, s, 1, errDisk)
	})
}

func TestRecords_ReadErrorIsNotDamage(t *testing.T) {
	s, _ := openFaulty(t, SyncNever)
	if err := s.Append([]Record{shortRecord(1)}); err != nil {
		t.Fatal(err)
	}
	s.f = unreadable{s.f}
	for _, err := range s.Records(0) {
		if !errors.Is(err, errDisk) || errors.Is(err, ErrCorrupt) {
			t.Errorf("Records = %v, want the error of the disk alone", err)
		}
	}
}

type unreadable struct{ logFile }

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, errDisk }

// A reader must cope with what any file may do: lines across reads, and any length of them.
func TestLineReader_SplitsAtNewlinesOnly(t *testing.T) {
	long := strings.Repeat("x", 300_000)
	text := "a\n\nbc\r\n" + long + "\n" + "end"
	r := newLineReader(strings.NewReader(text), 2, int64(len(text)))
	at := int64(2)
	for _, want := range []logLine{
		{2, []byte(""), true, false},
		{3, []byte("bc\r"), true, false},
		{7, []byte(long), true, false},
		{7 + 300_001, []byte("end"), false, false},
	} {
		got, err := r.next()
		if err != nil || got.at != want.at || string(got.text) != string(want.text) || got.whole != want.whole || got.long {
			t.Fatalf("line at %d: %d %.20q %v, %v", at, got.at, got.text, got.whole, err)
		}
		at = r.offset
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last line: %v", err)
	}
}

func TestFindRecord_Bisects(t *testing.T) {
	var text bytes.Buffer
	starts := []int64{0}
	for pos := int64(1); pos <= 3000; pos++ {
		starts = append(starts, int64(text.Len()))
		size := 10 + pos*7919%400
		if pos%500 == 0 {
			size = 200_000
		}
		fmt.Fprintf(&text, `{"pos":%d,"text":"%s"}`+"\n", pos, strings.Repeat("x", int(size)))
	}
	f := bytes.NewReader(text.Bytes())
	for pos := int64(1); pos <= 3000; pos++ {
		at := seekRecord(f, pos, logPosition{}, int64(text.Len()))
		if at.pos >= pos || at.offset != starts[at.pos+1] {
			t.Fatalf("looking for %d led to %+v", pos, at)
		}
		if starts[pos]-at.offset > seekWindow+200_100 {
			t.Errorf("looking for %d led to %+v, %d bytes before it", pos, at, starts[pos]-at.offset)
		}
	}
}

func TestLock_ReplacedFileIsNotLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Rename(path, path+".old"); err != nil {
		t.Skip(err)
	}
	if err := lockLog(f); err == nil {
		t.Error("lock of a file that was moved away = nil, want an error")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lockLog(f); err == nil || !strings.Contains(advice.Text(err), "replaced") {
		t.Errorf("lock of a file that was replaced = %v, want an error", err)
	}
}
