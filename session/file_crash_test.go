// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/session"
)

// A child is a process that works on a log, and prints what was acknowledged to it.
type child struct {
	cmd    *exec.Cmd
	out    *bufio.Scanner
	stdin  io.Closer
	stderr strings.Builder
	// acked is the last number that was acknowledged, by what was done.
	acked map[string]int64
}

func startChild(t *testing.T, role, path string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0]), acked: map[string]int64{}}
	c.cmd.Env = []string{childRole + "=" + role, childLog + "=" + path, "GORACE=" + os.Getenv("GORACE")}
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	return c
}

// next reads one more acknowledgement, or returns false at the end.
func (c *child) next() bool {
	if !c.out.Scan() {
		return false
	}
	var what string
	var pos int64
	if n, _ := fmt.Sscanf(c.out.Text(), "%s %d", &what, &pos); n == 2 {
		c.acked[what] = pos
	}
	return true
}

// kill ends the child as kill -9 does, some time after it has acknowledged a number of things, and reads
// what it had acknowledged by then.
func (c *child) kill(t *testing.T, things int, delay time.Duration) {
	t.Helper()
	for range things {
		if !c.next() {
			t.Fatalf("the child ended by itself: %v: %s", c.cmd.Wait(), &c.stderr)
		}
	}
	timer := time.AfterFunc(delay, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	for c.next() {
	}
	if err := c.cmd.Wait(); err == nil || c.cmd.ProcessState.Exited() && c.cmd.ProcessState.ExitCode() == 1 {
		t.Fatalf("the child ended by itself: %v: %s", err, &c.stderr)
	}
}

// crashRecord is what the child appends under a number: at times large, so that a kill meets a write.
func crashRecord(pos int64) session.Record {
	size := 100
	if pos%7 == 0 {
		size = 300_000
	}
	text := strings.Repeat(fmt.Sprint(pos, " "), size/len(fmt.Sprint(pos)))
	return session.Record{Pos: pos, Data: json.RawMessage(fmt.Sprintf(`{"pos":%d,"text":"%s"}`, pos, text))}
}

// crashState is what the child saves as checkpoint.
func crashState(pos int64) string {
	return fmt.Sprintf(`{"state":"%s"}`, strings.Repeat(fmt.Sprint(pos, " "), 100_000))
}

// appendForever appends records, alone and in batches, and saves checkpoints.
func appendForever(path string) error {
	// Death is to find the writes, not the waiting for the disk: that policy changes nothing here.
	s, err := session.OpenFile(path, &session.FileOptions{Sync: session.SyncNever})
	if err != nil {
		return err
	}
	if s.Last() == 0 {
		if head, _ := s.Head(); head.Version == 0 {
			err = s.Init(logHead)
		}
	}
	for err == nil {
		var batch []session.Record
		for pos := s.Last() + 1; len(batch) <= int(s.Last()%3); pos++ {
			batch = append(batch, crashRecord(pos))
		}
		if err = s.Append(batch); err == nil {
			fmt.Println("append", s.Last())
		}
		if pos := s.Last(); err == nil && pos%5 == 0 {
			if err = s.SaveCheckpoint(session.Checkpoint{Pos: pos, Data: json.RawMessage(crashState(pos))}); err == nil {
				fmt.Println("checkpoint", pos)
			}
		}
	}
	return err
}

func TestFileStore_KilledProcessLosesNoAcknowledgedRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	random := rand.New(rand.NewPCG(1, 2))
	torn := 0
	for range testkit.Size(10, 200) {
		c := startChild(t, "append", path)
		c.kill(t, 1+random.IntN(30), time.Duration(random.IntN(3000))*time.Microsecond)
		s := openLogFile(t, path, nil)
		if s.Last() < c.acked["append"] {
			t.Fatalf("the log ends at %d; %d was acknowledged", s.Last(), c.acked["append"])
		}
		checkCrashLog(t, s)
		got, err := s.Checkpoint()
		if err != nil || got.Pos < c.acked["checkpoint"] || got.Pos > 0 && string(got.Data) != crashState(got.Pos) {
			t.Fatalf("checkpoint is %d (%d bytes), %v; want one of %d or later, whole", got.Pos, len(got.Data), err, c.acked["checkpoint"])
		}
		if size, _ := s.Repaired(); size > 0 {
			torn++
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s.Last() > 1000 { // start a new log before reading this one takes long
			path = filepath.Join(t.TempDir(), "log.jsonl")
		}
	}
	t.Logf("%d torn lines were repaired", torn)
}

// checkCrashLog checks that the records are those of the child, without a gap.
func checkCrashLog(t *testing.T, s *session.FileStore) {
	t.Helper()
	at := int64(0)
	for r, err := range s.Records(0) {
		if err != nil {
			t.Fatal(err)
		}
		if at++; r.Pos != at || string(r.Data) != string(crashRecord(at).Data) {
			t.Fatalf("record after %d is %d: %.80s", at-1, r.Pos, r.Data)
		}
	}
	if at != s.Last() {
		t.Fatalf("the log has %d records, want %d", at, s.Last())
	}
}

type counted struct{ N int64 }

// dispatchForever dispatches numbers.
func dispatchForever(path string) error {
	store, err := session.OpenFile(path, nil)
	if err != nil {
		return err
	}
	s, err := session.Open(store, nil)
	for err == nil {
		last, _ := session.Query[counted](s).Latest()
		if _, err = s.Dispatch(context.Background(), counted{last.N + 1}); err == nil {
			fmt.Println("dispatch", last.N+1)
		}
	}
	return err
}

func TestSession_KilledProcessKeepsTheAcknowledgedState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	random := rand.New(rand.NewPCG(3, 4))
	for range testkit.Size(5, 100) {
		c := startChild(t, "dispatch", path)
		c.kill(t, 1+random.IntN(50), time.Duration(random.IntN(2000))*time.Microsecond)
		store := openLogFile(t, path, nil)
		s, err := session.Open(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		for v := range session.Query[counted](s).All() {
			if n++; v.N != n {
				t.Fatalf("value %d follows %d", v.N, n-1)
			}
		}
		if n < c.acked["dispatch"] {
			t.Fatalf("the state ends at %d; %d was acknowledged", n, c.acked["dispatch"])
		}
		closing := s.Close
		if n%2 == 0 { // so that the next one finds no checkpoint at the end
			closing = store.Close
		}
		if err := closing(); err != nil {
			t.Fatal(err)
		}
	}
}
