// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
)

// helperVar makes the test binary play one of the programs below instead of running tests.
const helperVar = "WATCHDOG_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperVar); role != "" {
		helper(role)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func helper(role string) {
	switch role {
	case "count":
		m, err := Count(context.Background(), os.Args[2] == "true", os.Args[1])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(m.Files)
		return
	case "burn":
		var used unix.Rusage // CPU time, however busy the machine is
		for time.Duration(used.Utime.Nano()) < 100*time.Millisecond {
			_ = strings.Repeat("x", 1000)
			_ = unix.Getrusage(unix.RUSAGE_SELF, &used)
		}
	case "allocate", "share":
		fd, flags := -1, unix.MAP_PRIVATE|unix.MAP_ANON
		if role == "share" {
			fd, flags = 3, unix.MAP_SHARED
		}
		block, err := unix.Mmap(fd, 0, 32<<20, unix.PROT_READ|unix.PROT_WRITE, flags)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// start starts a helper and waits until it is ready.
func start(t *testing.T, role string, files ...*os.File) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.ExtraFiles = []string{helperVar + "=" + role, "GORACE=atexit_sleep_ms=0"}, files
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("helper %s: %q, %v", role, line, err)
	}
	return cmd.Process.Pid
}

// watch runs a watchdog in fake time: do happens after the start, then some ticks pass. It returns
// what was exceeded.
func watch(t *testing.T, o Options, do func()) (breaches []Breach) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Exceeded = func(b Breach) { breaches = append(breaches, b) }
		w, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		do()
		time.Sleep(time.Second)
		w.Close()
	})
	return breaches
}

func TestWatch_GrowthIsBounded(t *testing.T) {
	cases := []struct {
		name       string
		opts       Options
		mib, files int // added after the start, to a MiB in one file
		want       What
	}{
		{"bytes below", Options{MaxBytes: 3 << 20}, 2, 0, ""},
		{"bytes above", Options{MaxBytes: 2 << 20}, 3, 0, Bytes},
		{"what was there is free", Options{MaxBytes: 1 << 20}, 0, 0, ""},
		{"unless the whole counts", Options{MaxBytes: 2 << 20, Whole: true}, 2, 0, Bytes},
		{"files below", Options{MaxFiles: 20}, 0, 15, ""},
		{"files above", Options{MaxFiles: 20}, 0, 25, Files},
		{"no limit", Options{}, 2, 25, ""},
		{"both, bytes above", Options{MaxBytes: 1 << 20, MaxFiles: 1000}, 2, 5, Bytes},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "before"), 1<<20)
			c.opts.Paths = []string{root}
			added := filepath.Join(root, "new")
			got := watch(t, c.opts, func() {
				for i := range c.files {
					write(t, filepath.Join(added, "many", fmt.Sprint(i)), 0)
				}
				write(t, filepath.Join(added, "large"), c.mib<<20)
			})
			if c.want == "" {
				if len(got) > 0 {
					t.Errorf("got %v, want nothing", got)
				}
				return
			}
			if len(got) != 1 || got[0].What != c.want || got[0].Found <= got[0].Limit {
				t.Fatalf("got %+v, want one breach of %s", got, c.want)
			}
			place := map[What]string{Bytes: filepath.Join(added, "large"), Files: filepath.Join(added, "many")}[c.want]
			if got[0].Path != place {
				t.Errorf("path: got %s, want %s", got[0].Path, place)
			}
		})
	}
}

func TestWatch_SparseFileIsNoBreach(t *testing.T) {
	root := t.TempDir()
	got := watch(t, Options{Paths: []string{root}, MaxBytes: 1 << 20}, func() {
		if err := sparse(filepath.Join(root, "sparse"), 1<<40); err != nil {
			t.Fatal(err)
		}
	})
	if len(got) > 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

func TestWatch_UnnamedFilesOfKnownProcessesCount(t *testing.T) {
	root := t.TempDir()
	open := func() {
		f, err := os.Create(filepath.Join(root, "open"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		if _, err := f.Write(make([]byte, 2<<20)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Paths: []string{root}, MaxBytes: 1 << 20, Processes: func() []int { return []int{os.Getpid()} }}
	got := watch(t, o, open)
	if len(got) != 1 || got[0].What != Bytes || !strings.HasPrefix(got[0].Path, filepath.Join(root, "open")) {
		t.Errorf("got %+v, want a breach by the open file", got)
	}
	o.Processes = nil
	if got := watch(t, o, open); len(got) > 0 {
		t.Errorf("without processes: got %+v, want nothing", got)
	}
}

func TestWatch_NestedFoldersCountOnce(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "in"), 0o755), os.Symlink(root, filepath.Join(root, "self"))); err != nil {
		t.Fatal(err)
	}
	o := Options{Paths: []string{filepath.Join(root, "in"), root, root + "/", filepath.Join(root, "self")}, MaxBytes: 3 << 20}
	if got := watch(t, o, func() { write(t, filepath.Join(root, "in", "file"), 2<<20) }); len(got) > 0 {
		t.Errorf("2 MiB below two names: got %v, want nothing", got)
	}
}

func TestWatch_FreeSpaceIsKept(t *testing.T) {
	root, free := t.TempDir(), atomic.Int64{}
	free.Store(100)
	o := Options{Paths: []string{root}, MinFree: 50, space: func(string) space { return space{true, free.Load(), 0} }}
	got := watch(t, o, func() { free.Store(49) })
	want := []Breach{{FreeSpace, 50, 49, o.Paths[0]}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.Exceeded = func(Breach) {}
	_, err := Start(t.Context(), o)
	if b, ok := errors.AsType[Breach](err); !ok || b.What != FreeSpace {
		t.Errorf("starting below the floor: got %v, want that breach", err)
	}
}

// What a cell holds in sockets or in files in memory is in no process. The machine's own memory shows it.
func TestWatch_FreeMemoryOfTheMachineIsKept(t *testing.T) {
	spare := atomic.Int64{}
	spare.Store(100)
	o := Options{MinMemory: 50, spare: func() (int64, bool) { return spare.Load(), true }}
	got := watch(t, o, func() { spare.Store(49) })
	want := []Breach{{What: SpareMemory, Limit: 50, Found: 49}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.Exceeded = func(Breach) {}
	_, err := Start(t.Context(), o)
	if b, ok := errors.AsType[Breach](err); !ok || b.What != SpareMemory {
		t.Errorf("starting below the floor: got %v, want that breach", err)
	}
	o.spare = func() (int64, bool) { return 0, false }
	if got := watch(t, o, func() {}); len(got) > 0 {
		t.Errorf("memory that is not known: got %v, want nothing", got)
	}
	if n, ok := spareMemory(); !ok || n < 1<<20 || n > 1<<50 {
		t.Errorf("this machine has %d bytes left, %v", n, ok)
	}
}

func TestWatch_MemoryAndTimeOfTheCallerAreBounded(t *testing.T) {
	cases := []struct {
		name   string
		memory int64
		cpu    time.Duration
		known  bool
		want   []Breach
	}{
		{"at the limit", 10, time.Minute, true, nil},
		{"memory", 11, 0, true, []Breach{{Memory, 10, 11, ""}}},
		{"time", 0, time.Hour, true, []Breach{{CPUTime, int64(time.Minute), int64(time.Hour), ""}}},
		{"not known", 11, time.Hour, false, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := watch(t, Options{
				MaxMemory: 10, Memory: func() (int64, bool) { return c.memory, c.known },
				MaxCPU: time.Minute, CPU: func() (time.Duration, bool) { return c.cpu, c.known },
			}, func() {})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWatch_MemoryOfProcessesIsBounded(t *testing.T) {
	pid := start(t, "allocate")
	o := Options{Processes: func() []int { return []int{pid} }, MaxMemory: 20 << 20}
	if got := watch(t, o, func() {}); len(got) != 1 || got[0].What != Memory || got[0].Found < 32<<20 {
		t.Errorf("got %+v, want a breach by 32 MiB", got)
	}
	o.MaxMemory = 200 << 20
	if got := watch(t, o, func() {}); len(got) > 0 {
		t.Errorf("got %+v, want nothing", got)
	}
}

func TestUsageOf_SharedMemory(t *testing.T) {
	fd, err := unix.MemfdCreate("shared", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	shared := os.NewFile(uintptr(fd), "shared")
	defer func() { _ = shared.Close() }()
	if err := shared.Truncate(32 << 20); err != nil {
		t.Fatal(err)
	}
	pids := []int{start(t, "share", shared), start(t, "share", shared), start(t, "share", shared)}
	usage, err := UsageOf(pids...)
	if err != nil || usage.Processes != 3 || usage.Memory < 96<<20 {
		t.Errorf("quick: got %+v, %v, want 3 processes and 96 MiB or more", usage, err)
	}
	exact := exactMemory(pids)
	if saved := usage.Memory - exact; saved < 56<<20 || saved > 72<<20 {
		t.Errorf("quick %d, exact %d: got a difference of %d, want 64 MiB or so, which are shared", usage.Memory, exact, saved)
	}
	o := Options{Processes: func() []int { return pids }, MaxMemory: (usage.Memory + exact) / 2}
	if got := watch(t, o, func() {}); len(got) > 0 {
		t.Errorf("below the limit if counted once: got %+v, want nothing", got)
	}
}

func TestUsageOf_CountsTimeAndSkipsEndedProcesses(t *testing.T) {
	usage, err := UsageOf(start(t, "burn"), 1<<30)
	if err != nil || usage.Processes != 1 || usage.CPU < 80*time.Millisecond || usage.CPU > 5*time.Second {
		t.Errorf("got %+v, %v, want one process with 100 ms or a bit more", usage, err)
	}
}

func TestWatch_TimeSpentNeverFalls(t *testing.T) {
	w := &Watchdog{opts: Options{MaxCPU: 10, CPU: func() (time.Duration, bool) { return 5, true }}, spent: 11}
	if got := w.checkProcesses(); got == nil || got.Found != 11 {
		t.Errorf("after a child took its time along: got %v, want 11 as before", got)
	}
}

// tracked is a watchdog without a goroutine.
func tracked(t *testing.T, o Options) *Watchdog {
	t.Helper()
	o.Exceeded = func(Breach) {}
	ctx, cancel := context.WithCancel(t.Context())
	w, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-w.done
	return w
}

func TestWatch_SingleSightingIsNoBreach(t *testing.T) {
	root := t.TempDir()
	w := tracked(t, Options{Paths: []string{root}, MaxBytes: 1 << 20})
	w.begin(w.room)
	w.walk.found.Bytes = 2 << 20 // as if a file had been moved from a folder that was counted to one that was not
	if got := w.look(t.Context()); got != nil {
		t.Errorf("got %v, want nothing", got)
	}
	write(t, filepath.Join(root, "file"), 2<<20)
	w.rest = time.Time{}
	if got := w.look(t.Context()); got == nil {
		t.Error("a real breach: got nothing")
	}
}

func TestUrgent_DiskLostTheRemainingAllowance(t *testing.T) {
	before := []space{{true, 1000, 100}}
	cases := []struct {
		name       string
		now        space
		lastBytes  int64
		bytes, max int64
		want       bool
	}{
		{"nothing happened", space{true, 1000, 100}, 0, 500, 0, false},
		{"less than what is left", space{true, 500, 100}, 0, 500, 0, false},
		{"more than what is left", space{true, 499, 100}, 0, 500, 0, true},
		{"little is left", space{true, 990, 100}, 495, 500, 0, true},
		{"files", space{true, 1000, 79}, 0, 0, 20, true},
		{"no limit on what was lost", space{true, 0, 0}, 0, 0, 200, false},
		{"not known", space{}, 0, 500, 20, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := &Watchdog{opts: Options{MaxBytes: c.bytes, MaxFiles: c.max}, room: before, last: Measure{Bytes: c.lastBytes}}
			if got := w.urgent([]space{c.now}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestWatch_LargeTreeIsWalkedInSlices(t *testing.T) {
	root := t.TempDir()
	for i := range 8 * stride {
		write(t, filepath.Join(root, fmt.Sprint(i)), 0)
	}
	w := tracked(t, Options{Paths: []string{root}, MaxFiles: 100})
	w.interval = time.Nanosecond // each look may take no time at all
	write(t, filepath.Join(root, "new"), 1)
	looks := 1
	for w.advance(t.Context(), w.room, false); w.walk != nil; looks++ {
		w.advance(t.Context(), w.room, false)
	}
	if got, want := w.Measure().Files, int64(8*stride+1); got != want || looks < 6 || looks > 20 {
		t.Errorf("got %d files after %d looks, want %d after some 8", got, looks, want)
	}
	if w.advance(t.Context(), w.room, true); w.walk != nil {
		t.Error("an urgent look: got a pause, want none")
	}
}

func TestWatch_LongWalkIsFollowedByAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		w := tracked(t, Options{MaxMemory: 1, Memory: func() (int64, bool) {
			asked++
			time.Sleep(100 * time.Millisecond)
			return 0, true
		}})
		for range 100 {
			time.Sleep(250 * time.Millisecond)
			w.look(t.Context())
		}
		if asked < 10 || asked > 20 {
			t.Errorf("in 25 s, each time for 100 ms: asked %d times, want some 15", asked)
		}
	})
}

func TestWatch_UrgentWalkSkipsThePause(t *testing.T) {
	root := t.TempDir()
	free := int64(100 << 20)
	w := tracked(t, Options{Paths: []string{root}, MaxBytes: 1 << 20, space: func(string) space { return space{true, free, 0} }})
	w.rest = time.Now().Add(time.Hour)
	write(t, filepath.Join(root, "file"), 2<<20)
	if got := w.look(t.Context()); got != nil {
		t.Errorf("at rest: got %v, want nothing", got)
	}
	free -= 2 << 20
	if got := w.look(t.Context()); got == nil {
		t.Error("when the disk lost more than is left: got nothing")
	}
}

func TestWatch_EndsWithItsContextAndWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := Options{Paths: []string{t.TempDir()}, MaxFiles: 1, Exceeded: func(b Breach) { t.Error(b) }}
		w, err := Start(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		write(t, filepath.Join(o.Paths[0], "a", "b"), 0)
		time.Sleep(time.Second)
		w.Close()
		w.Close()
	})
}

func TestWatch_CloseWaitsForExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported := false
		w, err := Start(t.Context(), Options{
			MaxCPU: 1, CPU: func() (time.Duration, bool) { return 2, true },
			Exceeded: func(Breach) { time.Sleep(time.Minute); reported = true },
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.Close()
		if !reported {
			t.Error("Close returned before Exceeded")
		}
	})
}

func TestStart_RefusesInvalidOptions(t *testing.T) {
	ignore, full := func(Breach) {}, t.TempDir()
	write(t, filepath.Join(full, "folder", "file"), 0)
	for name, o := range map[string]Options{
		"no Exceeded":     {MaxBytes: 1},
		"negative":        {MaxBytes: -1, Exceeded: ignore},
		"memory of whom":  {MaxMemory: 1, Exceeded: ignore},
		"time of whom":    {MaxCPU: 1, Exceeded: ignore},
		"missing folder":  {Paths: []string{"/nowhere/at/all"}, Exceeded: ignore},
		"unknown disk":    {Paths: []string{"/"}, MinFree: 1, Exceeded: ignore, space: func(string) space { return space{} }},
		"full from start": {Paths: []string{full}, MaxFiles: 1, Whole: true, Exceeded: ignore},
	} {
		w, err := Start(t.Context(), o)
		if err == nil {
			t.Errorf("%s: got no error", name)
			w.Close()
		} else if !strings.Contains(advice.Text(err), "\n  next: ") {
			t.Errorf("%s: got %v, want what to do next", name, err)
		}
	}
}

func TestBreach_TextHasTheNextStep(t *testing.T) {
	got := ""
	for _, b := range []Breach{
		{Bytes, 1 << 30, 3 << 29, "/work/core"},
		{Files, 100, 101, "/work/tmp"},
		{FreeSpace, 1 << 30, 1000, "/work"},
		{Memory, 1 << 20, 1<<20 + 1, ""},
		{CPUTime, int64(time.Minute), int64(61 * time.Second), ""},
	} {
		got += advice.Text(b) + "\n"
	}
	want := `the cell took 1.5 GiB on the disk, allowed are 1.0 GiB; the largest file is /work/core
  next: look at what it wrote, or raise the limit on bytes
the cell made 101 files, allowed are 100; the folder with the most is /work/tmp
  next: look at what it made, or raise the limit on files
the disk of /work has 1000 bytes free, 1.0 GiB must stay free
  next: make room there, or lower the floor
the cell used 1.0 MiB of memory, allowed are 1.0 MiB
  next: let it work on less at once, or raise the limit on memory
the cell used 1m1s of CPU time, allowed are 1m0s
  next: look at what it ran, or raise the limit on CPU time
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func ExampleStart() {
	work, _ := os.MkdirTemp("", "work-")
	defer func() { _ = os.RemoveAll(work) }()
	ended := make(chan Breach, 1)
	w, err := Start(context.Background(), Options{
		Paths: []string{work}, MaxFiles: 2, Interval: time.Millisecond,
		Exceeded: func(b Breach) { ended <- b }, // end the cell here
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	for _, name := range []string{"a", "b", "c"} {
		_ = os.WriteFile(filepath.Join(work, name), nil, 0o600)
	}
	b := <-ended
	fmt.Println(b.What, b.Found)
	// Output: files 3
}

func BenchmarkTick(b *testing.B) {
	root := b.TempDir()
	for i := range 1000 {
		write(b, filepath.Join(root, fmt.Sprint(i/100), fmt.Sprint(i)), 1)
	}
	for name, o := range map[string]Options{
		"free space only": {MinFree: 1},
		"1000 files":      {MinFree: 1, MaxFiles: 1000},
		"processes":       {Processes: func() []int { return []int{os.Getpid()} }, MaxMemory: 1 << 40, MaxCPU: time.Hour},
	} {
		b.Run(name, func(b *testing.B) {
			o.Paths, o.Exceeded = []string{root}, func(Breach) {}
			ctx, cancel := context.WithCancel(context.Background())
			w, err := Start(ctx, o)
			if err != nil {
				b.Fatal(err)
			}
			cancel()
			<-w.done
			for b.Loop() {
				w.rest = time.Time{} // a tick without the rests between
				w.look(context.Background())
			}
		})
	}
}

// How far a program that writes as fast as it can gets beyond the limit before it is reported.
func BenchmarkOvershoot(b *testing.B) {
	const limit, most = 16 << 20, 1 << 30
	var beyond int64
	for b.Loop() {
		reported := make(chan Breach, 1)
		root := b.TempDir()
		w, err := Start(context.Background(), Options{Paths: []string{root}, MaxBytes: limit, Exceeded: func(b Breach) { reported <- b }})
		if err != nil {
			b.Fatal(err)
		}
		f, err := os.Create(filepath.Join(root, "file"))
		if err != nil {
			b.Fatal(err)
		}
		block, written := make([]byte, 1<<20), int64(0)
		for len(reported) == 0 && written < most {
			n, _ := f.Write(block)
			written += int64(n)
		}
		beyond += written - limit
		_ = f.Close()
		_ = os.Remove(f.Name())
		w.Close()
	}
	b.ReportMetric(float64(beyond)/float64(b.N)/(1<<20), "MiB-beyond/op")
}
