// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows

package filelock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/filelock"
)

// holdVariable makes this test program a process that locks the file it names.
const holdVariable = "FILELOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdVariable); path != "" {
		hold(path)
	}
	os.Exit(m.Run())
}

// hold locks the file, prints the result, and keeps it until the process is killed or its input ends.
func hold(path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = filelock.Lock(context.Background(), f, time.Millisecond)
	}
	fmt.Println("locked:", err)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(1)
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func checkTry(t *testing.T, name string, f *os.File, want bool) {
	t.Helper()
	if got, err := filelock.Try(f); got != want || err != nil {
		t.Errorf("%s: Try = %t, %v, want %t", name, got, err, want)
	}
}

func TestTry_OneOpenFileHasTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	first, second := open(t, path), open(t, path)
	checkTry(t, "first", first, true)
	checkTry(t, "second", second, false)
	if err := filelock.Unlock(first); err != nil {
		t.Error(err)
	}
	checkTry(t, "second after the first unlocked", second, true)
	checkTry(t, "first while the second has it", first, false)
	second.Close()
	checkTry(t, "first after the second closed", first, true)
}

func TestTry_LockedFileCanBeReadAndWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	checkTry(t, "first", open(t, path), true)
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); string(got) != "text" || err != nil {
		t.Errorf("ReadFile = %q, %v", got, err)
	}
}

func TestFree_ReadersDoNotDisturbEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	holder := open(t, path)
	check := func(when string, want bool) {
		t.Helper()
		if got, err := filelock.Free(open(t, path)); got != want || err != nil {
			t.Errorf("%s: Free = %t, %v, want %t", when, got, err, want)
		}
	}
	check("unlocked", true)
	checkTry(t, "after a look", holder, true)
	check("locked", false)
	if err := filelock.Unlock(holder); err != nil {
		t.Error(err)
	}
	var all sync.WaitGroup
	for range 8 {
		f := open(t, path)
		all.Go(func() {
			for range 1000 {
				if free, err := filelock.Free(f); !free || err != nil {
					t.Errorf("beside others that look: Free = %t, %v", free, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestLock_WaitsUntilTheFileIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	first, second := open(t, path), open(t, path)
	synctest.Test(t, func(t *testing.T) {
		checkTry(t, "first", first, true)
		time.AfterFunc(time.Minute, func() { _ = filelock.Unlock(first) })
		start := time.Now()
		if err := filelock.Lock(t.Context(), second, 7*time.Second); err != nil {
			t.Error(err)
		}
		if got, want := time.Since(start), 63*time.Second; got != want {
			t.Errorf("waited %v, want %v: the first look after a minute", got, want)
		}
	})
	checkTry(t, "first", first, false)
}

func TestLock_StopsWhenTheContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	first, second := open(t, path), open(t, path)
	synctest.Test(t, func(t *testing.T) {
		checkTry(t, "first", first, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := filelock.Lock(ctx, second, time.Hour)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(advice.Text(err), path) {
			t.Errorf("got %v, want an ended context and the file's name", err)
		}
	})
}

func TestLock_EndedContextTakesNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := filelock.Lock(ctx, open(t, path), time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	checkTry(t, "another", open(t, path), true)
}

func TestLock_ErrorNamesTheFile(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "file"))
	f.Close()
	_, tryErr := filelock.Try(f)
	_, freeErr := filelock.Free(f)
	for name, err := range map[string]error{
		"Try":    tryErr,
		"Free":   freeErr,
		"Lock":   filelock.Lock(t.Context(), f, time.Second),
		"Unlock": filelock.Unlock(f),
	} {
		if err == nil || !strings.Contains(advice.Text(err), f.Name()) {
			t.Errorf("%s of a closed file: got %v, want an error with its name", name, err)
		}
	}
}

func TestLock_KilledProcessLosesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = []string{holdVariable + "=" + path}
	stdin, err := holder.StdinPipe() // stays open: the holder ends with this process at the latest
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if want := "locked: <nil>\n"; line != want {
		t.Errorf("the holder prints %q, want %q", line, want)
	}
	checkTry(t, "while it lives", f, false)
	if err := holder.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = holder.Wait()
	checkTry(t, "after its death", f, true)
}
