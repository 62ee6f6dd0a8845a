// SPDX-License-Identifier: Apache-2.0

//go:build darwin || linux

package session_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/session"
)

func init() { childRoles["fill"] = fillLimited }

const fileLimit = 100_000

// fillLimited appends until the system refuses, and goes on with what still fits.
func fillLimited(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: fileLimit, Max: fileLimit}); err != nil {
		return err
	}
	s, err := session.OpenFile(path, nil)
	if err != nil {
		return err
	}
	if err := s.Init(logHead); err != nil {
		return err
	}
	if err := fillUp(s, unix.EFBIG); err != nil {
		return err
	}
	fmt.Println("append", s.Last())
	return s.Close()
}

// fillUp appends batches until the disk is full, and checks that each fails whole; then single records,
// until none fits.
func fillUp(s *session.FileStore, full error) error {
	for size := int64(20); size >= 1; size-- {
		for {
			last := s.Last()
			var batch []session.Record
			for pos := last + 1; pos <= last+size; pos++ {
				batch = append(batch, longRecord(pos))
			}
			err := s.Append(batch)
			if err == nil {
				continue
			}
			if !errors.Is(err, full) || s.Last() != last {
				return fmt.Errorf("last is %d instead of %d: %w", s.Last(), last, err)
			}
			break
		}
	}
	return nil
}

// wantFull checks a log that was filled up.
func wantFull(t *testing.T, path string, acked, size int64) {
	t.Helper()
	s := openLogFile(t, path, &session.FileOptions{ReadOnly: true})
	got := readLog(t, s, 0)
	for i, data := range got {
		if want := string(longRecord(int64(i) + 1).Data); data != want {
			t.Fatalf("record %d is %s", i+1, data)
		}
	}
	if int64(len(got)) != acked || acked*500 < size/2 {
		t.Errorf("log has %d records, %d were acknowledged", len(got), acked)
	}
	if text := readText(t, path); !strings.HasSuffix(text, "}\n") || int64(strings.Count(text, "\n")) != acked+1 {
		t.Errorf("the file ends in %q", text[max(0, len(text)-80):])
	}
}

func TestFileStore_FileSizeLimitKeepsTheRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	c := startChild(t, "fill", path)
	for c.next() {
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("the child failed: %v: %s", err, &c.stderr)
	}
	wantFull(t, path, c.acked["append"], fileLimit)
}

// fullDisk is how many bytes the disk of the test has.
const fullDisk = 256 << 10

func TestFileStore_FullDiskKeepsTheRecords(t *testing.T) {
	dir := t.TempDir()
	mountSmall(t, dir, fullDisk)
	path := filepath.Join(dir, "log.jsonl")
	s := openLogFile(t, path, nil)
	if err := s.Init(logHead); err != nil {
		t.Fatal(err)
	}
	if err := fillUp(s, unix.ENOSPC); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveCheckpoint(session.Checkpoint{Pos: 1, Data: make([]byte, 4096)}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("SaveCheckpoint on a full disk = %v, want ENOSPC", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("a failed checkpoint left %v", files)
	}
	last := s.Last()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantFull(t, path, last, fullDisk)
}
