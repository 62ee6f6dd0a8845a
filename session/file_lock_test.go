// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/session"
)

// holdForever has the log open until its input ends.
func holdForever(path string) error {
	s, err := session.OpenFile(path, nil)
	if err != nil {
		return err
	}
	if err := s.Init(logHead); err != nil {
		return err
	}
	fmt.Println("open", 1)
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, s.Close())
}

func wantLocked(t *testing.T, path string, says ...string) {
	t.Helper()
	_, err := session.OpenFile(path, nil)
	if !errors.Is(err, session.ErrLocked) {
		t.Fatalf("OpenFile = %v, want ErrLocked", err)
	}
	for _, text := range append(says, path, "next:") {
		if !strings.Contains(advice.Text(err), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
	if _, _, err := session.Salvage(path); !errors.Is(err, session.ErrLocked) {
		t.Errorf("Salvage = %v, want ErrLocked", err)
	}
}

// onLinux is what can only be known there.
func onLinux(says string) []string {
	if runtime.GOOS == "linux" {
		return []string{says}
	}
	return nil
}

func TestOpenFile_SecondWriterIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	s := openLogFile(t, path, nil)
	wantLocked(t, path, onLinux("this process")...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openLogFile(t, path, nil)
}

func TestOpenFile_HardLinkIsTheSameLog(t *testing.T) {
	dir := t.TempDir()
	path, name := filepath.Join(dir, "log.jsonl"), filepath.Join(dir, "other.jsonl")
	openLogFile(t, path, nil)
	if err := os.Link(path, name); err != nil {
		t.Skip(err)
	}
	wantLocked(t, name)
}

func TestOpenFile_LockErrorNamesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	c := startChild(t, "hold", path)
	if !c.next() {
		t.Fatalf("the child did not open the log: %s", &c.stderr)
	}
	wantLocked(t, path, onLinux(fmt.Sprintf("process %d", c.cmd.Process.Pid))...)
	_ = c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("the child failed: %v: %s", err, &c.stderr)
	}
	openLogFile(t, path, nil)
}

func TestOpenFile_LockEndsWithItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	c := startChild(t, "hold", path)
	c.kill(t, 1, 0)
	openLogFile(t, path, nil)
}

func TestOpenFile_ReadOnlyNeedsNoLock(t *testing.T) {
	path := writeLog(t, 10, 5)
	writer := openLogFile(t, path, nil)
	reader := openLogFile(t, path, &session.FileOptions{ReadOnly: true})
	if err := writer.Append([]session.Record{longRecord(11)}); err != nil {
		t.Errorf("Append beside a reader = %v", err)
	}
	if got := len(readLog(t, reader, 0)); got != 10 {
		t.Errorf("reader has %d records, want the 10 that were there", got)
	}
	if c, err := reader.Checkpoint(); err != nil || c.Pos != 5 {
		t.Errorf("Checkpoint() = %d, %v, want 5", c.Pos, err)
	}
	for name, err := range map[string]error{
		"Append":         reader.Append([]session.Record{longRecord(11)}),
		"SaveCheckpoint": reader.SaveCheckpoint(session.Checkpoint{Pos: 1}),
		"Init":           reader.Init(logHead),
	} {
		if err == nil || !strings.Contains(advice.Text(err), "reading only") {
			t.Errorf("%s of a reader = %v, want it refused", name, err)
		}
	}
}

// A reader of a log sees the state without a tool call that is under way, and writes nothing.
func TestOpenFile_ReadOnlyStateHasNoOpenCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	writer := open(t, openLogFile(t, path, nil))
	defer writer.Close()
	dispatch(t, t.Context(), writer, added{1})
	own, tx := writer.Begin(t.Context(), "toolu_1")
	dispatch(t, own, writer, added{2})
	written := readText(t, path)
	readAs := func(wantValues int, wantLast int64) {
		t.Helper()
		reader := open(t, openLogFile(t, path, &session.FileOptions{ReadOnly: true}))
		defer reader.Close()
		if got := session.Query[added](reader).Len(); got != wantValues || reader.Last() != wantLast {
			t.Errorf("a reader has %d values of %d entries, want %d of %d", got, reader.Last(), wantValues, wantLast)
		}
	}
	readAs(1, 2)
	if got := readText(t, path); got != written {
		t.Errorf("the reader made the log\n%s", got)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	readAs(2, 3)
}

func TestOpenFile_ReadOnlyCreatesNothing(t *testing.T) {
	dir := t.TempDir()
	_, err := session.OpenFile(filepath.Join(dir, "sub", "log.jsonl"), &session.FileOptions{ReadOnly: true})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("OpenFile = %v, want ErrNotExist", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
