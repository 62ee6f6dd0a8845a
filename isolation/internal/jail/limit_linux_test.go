// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

func init() {
	roles["dial"] = func() {
		c, err := net.Dial(os.Args[1], os.Args[2])
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = io.Copy(os.Stdout, c)
	}
	roles["listen"] = func() { // on the address that is taken, then on one that is free
		_, err := net.Listen("tcp", os.Args[1])
		fmt.Println(err != nil)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		fmt.Println(err, l != nil)
	}
	roles["exhaust"] = exhaust
}

// exhaust starts processes until it may not, holds them, and prints how many it got.
func exhaust() {
	n := 0
	for ; n < 100; n++ {
		if exec.Command("/bin/sleep", "60").Start() != nil {
			break
		}
	}
	fmt.Println(n < 100)
	time.Sleep(time.Hour)
}

// One cell uses up its processes; another one of the same user works on.
func TestLimits_ProcessesAreCountedPerCell(t *testing.T) {
	requireCells(t)
	limits := jail.Limits{Processes: 40}
	greedy := roleSpec(t, "exhaust")
	greedy.Limits = limits
	cell := startCell(t, greedy)
	cell.awaitLine(t, "true")
	if got := len(proc.Descendants(cell.Init())); got > limits.Processes {
		t.Errorf("processes of the greedy cell: got %d, want at most %d", got, limits.Processes)
	}
	modest := shellSpec("for i in 1 2 3; do /bin/sleep 10 & done; /bin/echo fine")
	modest.Limits = limits
	if got, want := output(t, modest), "fine"; got != want {
		t.Errorf("beside it: got %q, want %q", got, want)
	}
}

func TestLimits_AreThoseOfTheProgram(t *testing.T) {
	requireCells(t)
	s := shellSpec("ulimit -Hu; ulimit -Hv; ulimit -Hf; ulimit -Ht; ulimit -Hn; ulimit -Hc; ulimit -n")
	s.Path = "/bin/bash"
	s.Limits = jail.Limits{Processes: 50, AddressSpace: 4 << 30, FileSize: 10 << 20, CPU: 1500 * time.Millisecond, OpenFiles: 100}
	want := "50\n4194304\n10240\n2\n100\n0\n100"
	if diff := cmp.Diff(want, output(t, s)); diff != "" {
		t.Errorf("limits inside (-want +got):\n%s", diff)
	}
}

func TestLimits_TemporaryFoldersAreSized(t *testing.T) {
	requireCells(t)
	s := shellSpec(`for f in /tmp/x /dev/shm/x; do head -c 10000000 /dev/zero > $f 2>/dev/null || stat -c %s $f; done
		df --output=size -B1 /tmp /dev/shm | tail -2`)
	s.TempBytes, s.SharedBytes = 1<<20, 2<<20
	got := strings.Fields(output(t, s))
	want := []string{"1048576", "2097152", "1048576", "2097152"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bytes written and sizes (-want +got):\n%s", diff)
	}
}

// Listeners work from inside to outside, and only there: the host's own port of that number is free.
func TestCell_ListenersAreHandedOut(t *testing.T) {
	requireCells(t)
	s := roleSpec(t, "dial", "tcp", "127.0.0.2:8081")
	s.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("127.0.0.2:8081")}
	cell := startCell(t, s)
	for i, want := range s.Listen {
		if got := cell.Listeners()[i].Addr().String(); got != want.String() {
			t.Errorf("listener %d: got %s, want %s", i, got, want)
		}
	}
	c, err := cell.Listeners()[1].Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write([]byte("hello\n"))
	_ = c.Close()
	if got, err := bufio.NewReader(cell.Stdout()).ReadString('\n'); got != "hello\n" {
		t.Errorf("inside: got %q, %v", got, err)
	}
	if c, err := net.DialTimeout("tcp", "127.0.0.2:8081", time.Second); err == nil {
		_ = c.Close()
		t.Error("the listener of the cell answers on the host")
	}
}

// Many cells at once do not get into each other's way, and leave neither descriptors nor threads.
func TestCell_ManyAtOnce(t *testing.T) {
	requireCells(t)
	dir := t.TempDir()
	files := countEntries(t, "/proc/self/fd")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			s := shellSpec("echo $0 > " + dir + "/$0; cat " + dir + "/$0")
			s.Args = append(s.Args, strconv.Itoa(i))
			s.Mounts = []jail.Mount{{Source: dir, Writable: true}}
			s.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080")}
			cell, err := jail.Start(t.Context(), s)
			if err != nil {
				t.Error(err)
				return
			}
			out, _ := io.ReadAll(cell.Stdout())
			if got, want := strings.TrimSpace(string(out)), strconv.Itoa(i); got != want {
				t.Errorf("cell %d: got %q", i, got)
			}
			_, _ = io.Copy(io.Discard, cell.Stderr())
			cell.Wait()
			_ = cell.Listeners()[0].Close()
		})
	}
	wg.Wait()
	// An id map may have been opened for the first time; twenty cells that leaked would show.
	waitUntil(t, "descriptors to be closed", func() bool { return countEntries(t, "/proc/self/fd") <= files+5 })
	waitUntil(t, "threads to end", func() bool { return countEntries(t, "/proc/self/task") < 40 })
}

func countEntries(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestCell_TwoUseTheSameAddress(t *testing.T) {
	requireCells(t)
	for range 2 {
		s := roleSpec(t, "listen", "127.0.0.1:8080")
		s.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080")}
		if got, want := output(t, s), "true\n<nil> true"; got != want {
			t.Errorf("inside: got %q, want %q", got, want)
		}
	}
}

// In the relaxed profile bubblewrap works inside; in the strict one it does not.
func TestCell_SandboxInside(t *testing.T) {
	requireCells(t)
	for nested, want := range map[bool]string{true: "0", false: "1"} {
		s := shellSpec("/usr/bin/bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev /bin/true 2>/dev/null; echo $?")
		s.Nested = nested
		if got := output(t, s); got != want {
			t.Errorf("nested %v: bubblewrap inside gave %q, want %q", nested, got, want)
		}
	}
}

func TestCell_UserInsideHasAName(t *testing.T) {
	requireCells(t)
	s := shellSpec("id -un; id -gn; getent passwd 1000; cat /etc/hosts; hostname 2>/dev/null || cat /proc/sys/kernel/hostname")
	s.Files = []jail.File{{Path: "/etc/hosts", Data: []byte("127.0.0.9 own\n")}}
	want := "agent\nagent\nagent:x:" + strconv.Itoa(1000) + ":1000:agent:/home/agent:/bin/sh\n127.0.0.9 own\ncell"
	if diff := cmp.Diff(want, output(t, s)); diff != "" {
		t.Errorf("inside (-want +got):\n%s", diff)
	}
}

func init() { roles["hoard"] = hoard }

// hoard takes all timers that it can get, and prints how many.
func hoard() {
	n := 0
	for id := int32(0); n < 1<<20; n++ {
		event := struct { // struct sigevent: SIGUSR1 when it is time
			value         uint64
			signo, notify int32
			_             [48]byte
		}{signo: int32(unix.SIGUSR1)}
		if raw(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&id))) != nil {
			break
		}
	}
	fmt.Println(n)
}

// The kernel counts queued signals, and with them timers, for all that a user runs. A cell does not get
// them all.
func TestCell_LeavesTimersToOthers(t *testing.T) {
	requireCells(t)
	got, err := strconv.Atoi(output(t, roleSpec(t, "hoard")))
	if err != nil || got > 1024 || got < 500 {
		t.Errorf("the cell got %d timers (%v), want some, and at most 1024", got, err)
	}
	limits := output(t, shellSpec("grep -E 'pending|msgqueue' /proc/self/limits"))
	for _, want := range []string{"1024", "131072"} {
		if strings.Count(limits, want) != 2 {
			t.Errorf("limits inside have no %s, soft and hard:\n%s", want, limits)
		}
	}
}
