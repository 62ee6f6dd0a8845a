// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

func init() { roles["siege"] = siege }

// outOfReach are the errors that an attempt on the first process of a cell may end with. The kernel lets a
// user change the scheduling and the limits of a process of the same user, and drops signals that the first
// process has no handler for: those attempts are made as well, and must change nothing about the end.
var outOfReach = map[string][]error{
	"write its memory":             {unix.EACCES},
	"write the memory of its task": {unix.EACCES},
	"read its memory map":          {unix.EACCES},
	"read its environment":         {unix.EACCES},
	"read its system call":         {unix.EACCES, unix.EPERM},
	"list its descriptors":         {unix.EACCES},
	"open its descriptor":          {unix.EACCES},
	"enter its root":               {unix.EACCES},
	"open its namespace":           {unix.EACCES},
	"name its program":             {unix.EACCES},
	"rename it":                    {unix.EACCES},
	"offer it to the OOM killer":   {unix.EACCES},
	"ptrace seize":                 {unix.EPERM},
	"ptrace attach":                {unix.EPERM},
	"process_vm_readv":             {unix.EPERM},
	"process_vm_writev":            {unix.EPERM},
	"process_madvise":              {unix.EPERM},
	"pidfd_getfd":                  {unix.EPERM},
	"kcmp":                         {unix.EPERM},
	"move_pages":                   {unix.EPERM},
	"core scheduling":              {unix.EPERM, unix.EINVAL, unix.ENODEV},
	"set_robust_list of another":   {unix.EPERM},
}

// reachAttempts try to read and change the first process.
func reachAttempts() map[string]func() error {
	pidfd, _ := unix.PidfdOpen(1, 0)
	open := func(path string, flags int) func() error {
		return func() error {
			fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
			_ = unix.Close(fd)
			return err
		}
	}
	call := func(number uintptr, args ...uintptr) func() error {
		return func() error { return raw(number, args...) }
	}
	readLink := func() error {
		_, err := os.Readlink("/proc/1/exe")
		return err
	}
	var word, size uint64
	return map[string]func() error{
		"write its memory":             open("/proc/1/mem", unix.O_RDWR),
		"write the memory of its task": open("/proc/1/task/1/mem", unix.O_RDWR),
		"read its memory map":          read("/proc/1/maps"),
		"read its environment":         read("/proc/1/environ"),
		"read its system call":         func() error { _, err := os.ReadFile("/proc/1/syscall"); return err },
		"list its descriptors":         func() error { _, err := os.ReadDir("/proc/1/fd"); return err },
		"open its descriptor":          open("/proc/1/fd/1", unix.O_WRONLY),
		"enter its root":               open("/proc/1/root/", unix.O_RDONLY),
		"open its namespace":           open("/proc/1/ns/pid", unix.O_RDONLY),
		"name its program":             readLink,
		"rename it":                    open("/proc/1/comm", unix.O_WRONLY),
		"offer it to the OOM killer":   open("/proc/1/oom_score_adj", unix.O_WRONLY),
		"ptrace seize":                 call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1, 0, 0),
		"ptrace attach":                call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1, 0, 0),
		"process_vm_readv":             call(unix.SYS_PROCESS_VM_READV, 1, 0, 0, 0, 0, 0),
		"process_vm_writev":            call(unix.SYS_PROCESS_VM_WRITEV, 1, 0, 0, 0, 0, 0),
		"process_madvise":              call(unix.SYS_PROCESS_MADVISE, uintptr(pidfd), 0, 0, unix.MADV_COLD, 0),
		"pidfd_getfd":                  call(unix.SYS_PIDFD_GETFD, uintptr(pidfd), 0, 0),
		"kcmp":                         call(unix.SYS_KCMP, uintptr(os.Getpid()), 1, 0, 0, 0),
		"move_pages":                   call(unix.SYS_MOVE_PAGES, 1, 0, 0, 0, 0, 0),
		"core scheduling":              call(unix.SYS_PRCTL, unix.PR_SCHED_CORE, unix.PR_SCHED_CORE_SHARE_FROM, 1, 0, 0),
		"set_robust_list of another": func() error {
			return raw(unix.SYS_GET_ROBUST_LIST, 1, uintptr(unsafe.Pointer(&word)), uintptr(unsafe.Pointer(&size)))
		},
	}
}

// siege tries to take the first process out of the hands of the host, reports what came of it, starts
// processes in every way that tends to outlive a kill, and waits.
func siege() {
	for name, try := range reachAttempts() {
		var number syscall.Errno
		if err := try(); errors.As(err, &number) {
			fmt.Printf("%s\t%d\n", name, number)
		} else {
			fmt.Printf("%s\tsucceeded: %v\n", name, err)
		}
	}
	takeOver()
	// What the kernel allows a process of the same user.
	pidfd, _ := unix.PidfdOpen(1, 0)
	for _, sig := range []syscall.Signal{unix.SIGCHLD, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTERM, unix.SIGHUP, unix.SIGIO, unix.SIGKILL} {
		_ = unix.Kill(1, sig)
		_ = unix.PidfdSendSignal(pidfd, sig, nil, 0)
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 1, 19)
	_ = unix.SchedSetAttr(1, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
	_ = raw(unix.SYS_IOPRIO_SET, 1, 1, 3<<13)
	for _, resource := range []int{unix.RLIMIT_CORE, unix.RLIMIT_SIGPENDING, unix.RLIMIT_NPROC, unix.RLIMIT_STACK, unix.RLIMIT_FSIZE} {
		_ = unix.Prlimit(1, resource, &unix.Rlimit{}, nil)
	}
	family()
}

// takeOver has the first process clear its death signal and sleep for ever, by code at the place at which
// its system call returns. It needs all that is tried above.
func takeOver() {
	mem, err := os.OpenFile("/proc/1/mem", os.O_RDWR, 0)
	if err != nil || runtime.GOARCH != "amd64" {
		return
	}
	state, _ := os.ReadFile("/proc/1/syscall")
	words := strings.Fields(string(state))
	if len(words) < 2 {
		return
	}
	at, _ := strconv.ParseInt(words[len(words)-1], 0, 64)
	code := "\xb8\x9d\x00\x00\x00\xbf\x01\x00\x00\x00\x31\xf6\x0f\x05" + // prctl(PR_SET_PDEATHSIG, 0)
		"\xb8\x22\x00\x00\x00\x0f\x05\xeb\xf7" // for (;;) pause()
	_, _ = mem.WriteAt([]byte(code), at)
	for range 100 { // an orphan that ends wakes it up
		_ = exec.Command("/bin/sh", "-c", "(true &)").Run()
		if state, _ := os.ReadFile("/proc/1/syscall"); strings.HasPrefix(string(state), "34 ") {
			return
		}
	}
}

// An agent that goes for the first process of its cell does not outlive the host program.
func TestKill_OfTheHostEndsACellThatAttacksItsInit(t *testing.T) {
	requireCells(t)
	for range testkit.Size(3, 50) {
		marker := "marker-" + rand.Text()
		cmd := exec.Command("/proc/self/exe", marker)
		cmd.Env = []string{
			roleVariable + "=host", "PATH=" + os.Getenv("PATH"), "SELF=" + roleSpec(t, "").Mounts[0].Source, "INSIDE=siege",
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "ready" {
			name, result, _ := strings.Cut(lines.Text(), "\t")
			got[name] = result
		}
		if n := len(alive(marker)); n < familySize {
			t.Errorf("processes before: got %d, want at least %d", n, familySize)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		killed := time.Now()
		for len(alive(marker)) > 0 {
			if time.Since(killed) > 2*time.Second {
				t.Errorf("left two seconds after the host was killed: %v", alive(marker))
				for _, pid := range alive(marker) {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		checkOutOfReach(t, got)
	}
}

func checkOutOfReach(t *testing.T, got map[string]string) {
	t.Helper()
	want := map[string]string{}
	for name, errs := range outOfReach {
		want[name] = got[name]
		if number, err := strconv.Atoi(got[name]); err != nil || !oneOf(syscall.Errno(number), errs) {
			want[name] = fmt.Sprint(errs)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts on the first process (-want +got):\n%s", diff)
	}
}
