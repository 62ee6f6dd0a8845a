// SPDX-License-Identifier: Apache-2.0

//go:build unix

package claudetest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
)

// slotVariable makes TestHelper_Slots act, in a test binary of its own: "hold" or "take" and the
// folder of the slots.
const slotVariable = "DROVER_TEST_SLOTS"

func TestHelper_Slots(t *testing.T) {
	how, dir, _ := strings.Cut(os.Getenv(slotVariable), " ")
	switch how {
	case "hold":
		slot, err := acquireSlot(dir, 1, 0)
		fmt.Println("holds", slot != nil, err)
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	case "take":
		takeManyTimes(t, dir)
	}
}

// slotsHelper is a process that does what TestHelper_Slots says.
func slotsHelper(t *testing.T, how, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestHelper_Slots$")
	cmd.Env = append(os.Environ(), slotVariable+"="+how+" "+dir, "TMPDIR="+t.TempDir()) // what a killed one leaves
	return cmd
}

func TestSlot_IsReleasedWhenItsProcessDies(t *testing.T) {
	dir := t.TempDir()
	holder := slotsHelper(t, "hold", dir)
	stdin, err := holder.StdinPipe()
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
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "holds true <nil>" {
		t.Errorf("the other process printed %q (%v)", line, err)
	}
	if slot, err := acquireSlot(dir, 1, 0); err == nil || !strings.Contains(advice.Text(err), "next: see which test programs hold the files in "+dir) {
		t.Errorf("got slot %v and error %v while another process has the only one, want an error that says what to do", slot, err)
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	slot, err := acquireSlot(dir, 1, 0)
	if err != nil {
		t.Fatalf("the slot of a process that died is not free: %v", err)
	}
	_ = slot.Close()
}

// A package with many tests asks for its next slot as soon as it has given one back. Others must not
// wait until it is through.
func TestSlot_LongestWaiterIsServedFirst(t *testing.T) {
	dir := t.TempDir()
	var takes atomic.Int64
	over := make(chan struct{})
	var greedy sync.WaitGroup
	defer greedy.Wait()
	defer close(over)
	greedy.Go(func() {
		for {
			slot, err := acquireSlot(dir, 1, time.Minute)
			if err != nil {
				t.Errorf("the greedy one: %v", err)
				return
			}
			takes.Add(1)
			time.Sleep(time.Millisecond) // the work of a test
			_ = slot.Close()
			select {
			case <-over:
				return
			default:
			}
		}
	})
	for range 20 {
		before := takes.Load()
		slot, err := acquireSlot(dir, 1, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got := takes.Load() - before; got > 20 {
			t.Errorf("the other one had %d slots before the one who waited had one", got)
		}
		_ = slot.Close()
	}
}

// Four processes take two slots a few dozen times and write down when. At no time there are more
// than two.
func TestSlot_ProcessesShareTheLimit(t *testing.T) {
	dir := t.TempDir()
	var helpers []*exec.Cmd
	for range 4 {
		cmd := slotsHelper(t, "take", dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		helpers = append(helpers, cmd)
	}
	for _, cmd := range helpers {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process that takes slots: %v", err)
		}
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bytes.Count(log, []byte("+")), 4*takes; got != want {
		t.Errorf("slots were taken %d times, want %d", got, want)
	}
	if got := mostAtOnce(log); got > 2 {
		t.Errorf("%d slots were taken at once, want at most 2:\n%s", got, log)
	}
}

const takes = 20

func takeManyTimes(t *testing.T, dir string) {
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for range takes {
		slot, err := acquireSlot(dir, 2, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = log.WriteString("+")
		for range 100 { // some work, so that others come in between
			_, _ = log.WriteString(".")
		}
		_, _ = log.WriteString("-")
		_ = slot.Close()
	}
}

func mostAtOnce(log []byte) int {
	now, most := 0, 0
	for _, b := range log {
		switch b {
		case '+':
			now++
		case '-':
			now--
		}
		most = max(most, now)
	}
	return most
}

// A test that uses two CLIs would otherwise wait for ever for another program that does the same.
func TestSlot_TestProgramNeedsOnlyOne(t *testing.T) {
	t.Setenv("DROVER_SLOTS", t.TempDir())
	free := func() bool {
		slot, err := acquireSlot(slotFolder(), 1, 0)
		if err == nil {
			_ = slot.Close()
		}
		return err == nil
	}
	t.Run("two", func(t *testing.T) {
		takeSlot(t)
		for n := range runtime.NumCPU() { // whatever is left is taken by others
			if other := lockSlot(filepath.Join(slotFolder(), strconv.Itoa(n)), syscall.LOCK_NB); other != nil {
				defer func() { _ = other.Close() }()
			}
		}
		takeSlot(t)
		if free() {
			t.Error("the slot of a test that goes on can be had")
		}
	})
	if !free() {
		t.Error("the slot was not given back")
	}
}
