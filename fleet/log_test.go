// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/session/storetest"
)

func openLog(t *testing.T, f *fleet.Fleet, id string) *fleet.Log {
	t.Helper()
	l, err := f.OpenLog(t.Context(), id, t.Name())
	if err != nil {
		t.Fatalf("OpenLog(%q) = %v", id, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestLog_PassesTheSuite(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		storetest.Run(t, func(t *testing.T) (session.Store, func() session.Store) {
			id := "suite." + ident.NewUUID()
			reopen := func() session.Store { return openLog(t, f, id) }
			return reopen(), reopen
		})
	})
}

func entry(pos int64) session.Record {
	return session.Record{Pos: pos, Data: json.RawMessage(fmt.Sprintf(`{"pos":%d}`, pos))}
}

// begun is a log with records up to a number.
func begun(t *testing.T, f *fleet.Fleet, id string, last int64) *fleet.Log {
	t.Helper()
	l := openLog(t, f, id)
	if err := l.Init(session.Head{Version: session.EncodingVersion, ID: id}); err != nil {
		t.Fatal(err)
	}
	for pos := int64(1); pos <= last; pos++ {
		if err := l.Append([]session.Record{entry(pos)}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestLog_EarlierHolderIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		first := begun(t, open(t), "run", 2)
		second := openLog(t, open(t), "run")
		if got := second.Last(); got != 2 {
			t.Fatalf("the second holder has %d records, want 2", got)
		}
		select {
		case <-first.Lost():
			t.Error("the first holder has lost the log before it could know")
		default:
		}
		if err := first.Append([]session.Record{entry(3)}); !errors.Is(err, fleet.ErrLost) {
			t.Errorf("Append by the first holder = %v, want ErrLost", err)
		}
		select {
		case <-first.Lost():
		default:
			t.Error("Lost is open after a refused append")
		}
		if err := first.SaveCheckpoint(session.Checkpoint{Pos: 1, Data: json.RawMessage(`{}`)}); !errors.Is(err, fleet.ErrLost) {
			t.Errorf("SaveCheckpoint by the first holder = %v, want ErrLost", err)
		}
		if err := second.Append([]session.Record{entry(3)}); err != nil {
			t.Errorf("Append by the second holder = %v", err)
		}
		n := int64(0)
		for r, err := range openLog(t, open(t), "run").Records(0) {
			if n++; err != nil || r.Pos != n || string(r.Data) != string(entry(n).Data) {
				t.Fatalf("record %d is %d %s, %v", n, r.Pos, r.Data, err)
			}
		}
		if n != 3 {
			t.Errorf("the log has %d records, want 3", n)
		}
	})
}

// Many take over one log at once: the last one can append, and no record is there twice.
func TestLog_HoldersRace(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		begun(t, f, "run", 1)
		const holders = 8
		kept := make(chan int, holders)
		for range holders {
			go func() {
				l, err := f.OpenLog(context.Background(), "run", "racer")
				if err != nil {
					t.Errorf("OpenLog = %v", err)
					kept <- 0
					return
				}
				n := 0
				for n < 5 && l.Append([]session.Record{entry(l.Last() + 1)}) == nil {
					n++
				}
				kept <- n
			}()
		}
		sum := 1
		for range holders {
			sum += <-kept
		}
		l := openLog(t, f, "run")
		if sum < 6 || l.Last() != int64(sum) {
			t.Errorf("%d appends were acknowledged, the log has %d records", sum, l.Last())
		}
		n := int64(0)
		for r, err := range l.Records(0) {
			if n++; err != nil || r.Pos != n {
				t.Fatalf("record %d is %d, %v", n, r.Pos, err)
			}
		}
	})
}

func TestOpenLog_RefusesBadIDs(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	for _, id := range []string{"", ".", "a.", ".a", "a..b", "a b", "*", "a.>", "é", strings.Repeat("a", 65)} {
		if _, err := f.OpenLog(t.Context(), id, ""); err == nil {
			t.Errorf("OpenLog(%q) = nil, want an error", id)
		}
	}
}

func TestOpen_SecondUserOfTheFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	f, err := fleet.Open(t.Context(), &fleet.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	begun(t, f, "run", 3)
	if _, err := fleet.Open(t.Context(), &fleet.Options{Dir: dir}); !errors.Is(err, fleet.ErrInUse) {
		t.Errorf("Open in the same process = %v, want ErrInUse", err)
	}
	out, err := child("append", dir).Output()
	if err == nil || !strings.Contains(string(out), fleet.ErrInUse.Error()) {
		t.Errorf("Open in another process printed %q, want %q", out, fleet.ErrInUse)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f, err = fleet.Open(t.Context(), &fleet.Options{Dir: dir})
	if err != nil {
		t.Fatalf("Open after Close = %v", err)
	}
	defer f.Close()
	if got := openLog(t, f, "run").Last(); got != 3 {
		t.Errorf("the log has %d records after Close and Open, want 3", got)
	}
}

func TestOpen_RefusesContradictions(t *testing.T) {
	for name, o := range map[string]*fleet.Options{
		"nothing":            nil,
		"both":               {Dir: t.TempDir(), URLs: []string{"nats://127.0.0.1:1"}},
		"copies in a folder": {Dir: t.TempDir(), Replicas: 3},
		"a bad name":         {Dir: t.TempDir(), Name: "a.b"},
		"nobody there":       {URLs: []string{"nats://127.0.0.1:1"}},
	} {
		if f, err := fleet.Open(t.Context(), o); err == nil {
			t.Errorf("Open with %s = nil, want an error", name)
			f.Close()
		}
	}
}

func child(role, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{childRole + "=" + role, childDir + "=" + dir}
	return cmd
}

// appendForever prints the number of each record when it is acknowledged. It ends after FLEET_TEST_APPENDS records, if set.
func appendForever(f *fleet.Fleet) {
	l, err := f.OpenLog(context.Background(), "run", "child")
	if err == nil {
		err = l.Init(session.Head{Version: session.EncodingVersion, ID: "run"})
	}
	end, _ := strconv.ParseInt(os.Getenv("FLEET_TEST_APPENDS"), 10, 64)
	for pos := int64(1); err == nil && (end == 0 || pos <= end); pos++ {
		if err = l.Append([]session.Record{entry(pos)}); err == nil {
			fmt.Println(pos)
		}
	}
	if err != nil {
		fmt.Println(err)
	}
}

func TestLog_KilledServerHasWhatItAcknowledged(t *testing.T) {
	dir := t.TempDir()
	cmd := child("append", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, acknowledged := bufio.NewScanner(out), ""
	for range 50 {
		if !lines.Scan() {
			t.Fatalf("the child has ended after %q", acknowledged)
		}
		acknowledged = lines.Text()
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		acknowledged = lines.Text()
	}
	_ = cmd.Wait()
	began := time.Now()
	f, err := fleet.Open(t.Context(), &fleet.Options{Dir: dir})
	if err != nil {
		t.Fatalf("Open after a kill = %v", err)
	}
	defer f.Close()
	if got := fmt.Sprint(openLog(t, f, "run").Last()); got != acknowledged && got != next(acknowledged) {
		t.Errorf("the log ends at %s, the last acknowledged record is %s", got, acknowledged)
	}
	t.Logf("opened after %s", time.Since(began))
}

func next(n string) string {
	var i int
	_, _ = fmt.Sscan(n, &i)
	return fmt.Sprint(i + 1)
}
