// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// infoWait bounds the wait for bubblewrap's first words; it needs milliseconds, on a busy machine some hundred of them.
	infoWait = 30 * time.Second
	// findWait bounds the search for the program below bubblewrap.
	findWait = 5 * time.Second
	// emptyWait bounds the wait for the kernel to take the namespace down.
	emptyWait = 5 * time.Second
	poll      = 2 * time.Millisecond
)

// A namespace is a running bubblewrap. It is our child and passes on the exit code of the program, which is a child
// of init, pid 1 of the namespace. Pids are those seen outside.
type namespace struct {
	init  int // pid outside
	pidfd int // of init; stays valid when the pid is used again
}

// namespaceArgs are bubblewrap's arguments. Files and devices stay the host's; only pids and /proc are new.
func namespaceArgs(dir string) []string {
	return []string{
		"--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc",
		"--die-with-parent", "--chdir", dir,
	}
}

// A Bubblewrap is a bubblewrap with arguments of the caller's own, which must give the program a PID
// namespace and end with it.
type Bubblewrap struct {
	// Path is the bubblewrap.
	Path string
	// Args are its arguments, Command is the program and its arguments.
	Args, Command []string
	// Dir and Env are those of bubblewrap itself.
	Dir string
	Env []string
	// Credential is the OS user to run as. Nil means the current one.
	Credential *Credential
	// Files are further descriptors of bubblewrap, numbered from [FirstFile]. They remain the caller's to close.
	Files []*os.File
	// Held, if not nil, stays open in this process until the program has ended, and is closed then, or
	// by a start that fails. So the other end of a pipe sees the end of this process too, even by SIGKILL.
	Held *os.File
	// Prepare, if not nil, runs on the thread that starts bubblewrap, right before it does. It may
	// change what belongs to the thread, such as its mount namespace: the thread is never the first
	// one of the process and is used for nothing else.
	Prepare func() error
	// Confine, if not nil, gets the pids of bubblewrap and of init before the program runs. An error ends the start.
	Confine func(pids []int) error
}

// FirstFile is the number of the first of a [Bubblewrap]'s Files. Those before are taken.
const FirstFile = 5

func startInNamespace(ctx context.Context, s Spec, bwrap string) (*Process, error) {
	return StartBubblewrap(ctx, Bubblewrap{
		Path: bwrap, Args: namespaceArgs(s.Dir), Command: append([]string{s.Path}, s.Args...),
		Dir: s.Dir, Env: s.Env, Credential: s.Credential,
	})
}

// StartBubblewrap starts b, with all promises for a PID namespace. The context covers the start only.
func StartBubblewrap(ctx context.Context, b Bubblewrap) (*Process, error) {
	args := append(slices.Clone(b.Args), "--info-fd", "3", "--block-fd", "4", "--")
	s := Spec{Dir: b.Dir, Env: b.Env, Credential: b.Credential}
	p, ends, err := newProcess(s, b.Path, append(args, b.Command...))
	if err != nil {
		_ = b.Held.Close()
		return nil, err
	}
	p.held = b.Held
	info, release, err := p.addFiles(ends)
	if err != nil {
		ends.close()
		p.abandon()
		return nil, fmt.Errorf("making pipes: %w", err)
	}
	defer func() { _, _ = info.Close(), release.Close() }()
	p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, b.Files...)
	p.cmd.SysProcAttr = attributes(s)
	err = p.launch(ends, b.Prepare, func() error { return p.hold(ctx, b, info, release) })
	if err != nil {
		return nil, p.bwrapError(b.Path, err)
	}
	return p, nil
}

// hold takes the namespace in hand and lets the program begin.
func (p *Process) hold(ctx context.Context, b Bubblewrap, info, release *os.File) error {
	pid := p.cmd.Process.Pid
	ns, err := openNamespace(ctx, info, pid)
	p.tree.ns = ns
	if err == nil && b.Confine != nil {
		err = b.Confine([]int{pid, ns.init})
	}
	if err == nil {
		_, err = release.Write([]byte{1})
	}
	return err
}

// Init returns the pid of the PID namespace's first process as seen from here, or zero if the program
// has no PID namespace of its own. Once the program has ended, the pid may belong to another process.
func (p *Process) Init() int {
	if p.tree.ns == nil {
		return 0
	}
	return p.tree.ns.init
}

// addFiles gives bubblewrap two more pipes: on fd 3 it reports, on fd 4 it waits before it runs the
// program, so that even the shortest program is in hand before it begins. Bubblewrap closes both.
func (p *Process) addFiles(ends *childEnds) (info, release *os.File, err error) {
	info, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	ends.files = append(ends.files, w)
	r, release, err := os.Pipe()
	if err != nil {
		_ = info.Close()
		return nil, nil, err
	}
	ends.files = append(ends.files, r)
	p.cmd.ExtraFiles = []*os.File{w, r}
	return info, release, nil
}

func (p *Process) bwrapError(bwrap string, err error) error {
	if p.cmd.Process == nil {
		return startError(bwrap, err)
	}
	defer p.abandon()
	output, _ := io.ReadAll(io.LimitReader(p.stderr, 2048))
	p.Wait()
	if text := strings.TrimSpace(string(output)); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return startError(bwrap, err)
}

// openNamespace reads the first words of the bubblewrap with the given pid and takes a handle on its init.
func openNamespace(ctx context.Context, r *os.File, bwrap int) (*namespace, error) {
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = r.SetReadDeadline(time.Now().Add(infoWait))
	var info struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(r).Decode(&info); err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("bubblewrap did not report its namespace: %w", err))
	}
	fd, err := unix.PidfdOpen(info.Child, 0)
	if err != nil {
		return nil, fmt.Errorf("opening pid %d of the namespace: %w", info.Child, err)
	}
	// The handle is the right one only if the pid was not used again before it was opened.
	if ppid, ok := parentOf(info.Child); !ok || ppid != bwrap {
		_ = unix.Close(fd)
		return nil, errors.New("the namespace ended while it was starting")
	}
	return &namespace{init: info.Child, pidfd: fd}, nil
}

// kill ends init, and with it the kernel ends all of the namespace.
func (n *namespace) kill() {
	_ = unix.PidfdSendSignal(n.pidfd, unix.SIGKILL, nil, 0)
}

// awaitEmpty makes sure that nothing is left of the namespace and closes the handle. The kernel
// reports the end of a namespace's init only when all other members are gone.
func (n *namespace) awaitEmpty() {
	defer func() { _ = unix.Close(n.pidfd) }()
	n.kill()
	deadline := time.Now().Add(emptyWait)
	for {
		left := time.Until(deadline)
		fds := []unix.PollFd{{Fd: int32(n.pidfd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, int(max(left, 0).Milliseconds()))
		if !errors.Is(err, unix.EINTR) || left <= 0 {
			return
		}
	}
}

func (p *Process) signalInside(sig syscall.Signal) error {
	pid, err := p.programPID()
	if err != nil {
		return err
	}
	target, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return os.ErrProcessDone
	}
	defer func() { _ = unix.Close(target) }()
	if ppid, ok := parentOf(pid); !ok || ppid != p.tree.ns.init {
		return os.ErrProcessDone
	}
	p.mu.Lock()
	if endsProgram(pid, sig) {
		p.fatal[int(sig)] = true
	}
	p.mu.Unlock()
	if err := unix.PidfdSendSignal(target, sig, nil, 0); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	return nil
}

// programPID finds the program: the first child of the namespace's init. Bubblewrap may still be
// on its way to running it, so this waits, but not for long.
func (p *Process) programPID() (int, error) {
	deadline := time.Now().Add(findWait)
	for {
		pid := firstChild(p.tree.ns.init)
		late := time.Now().After(deadline)
		if pid != 0 && (late || comm(pid) != "bwrap") {
			return pid, nil
		}
		if late {
			return 0, errors.New("bubblewrap did not run the program in time")
		}
		select {
		case <-p.done:
			return 0, os.ErrProcessDone
		case <-time.After(poll):
		}
	}
}

// firstChild returns the child of init that is oldest by its pid inside; orphans that init has taken over are younger.
func firstChild(init int) int {
	first, lowest := 0, 0
	for _, pid := range scannedChildren()(init) { // to miss it would be to signal another one
		if inside := lastPID(statusField(pid, "NSpid")); inside != 0 && (first == 0 || inside < lowest) {
			first, lowest = pid, inside
		}
	}
	return first
}

// lastPID returns the innermost of the pids in an NSpid line.
func lastPID(line string) int {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return 0
	}
	pid, _ := strconv.Atoi(fields[len(fields)-1])
	return pid
}

func comm(pid int) string {
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return strings.TrimSpace(string(name))
}

// endsProgram reports whether sig ends pid for certain.
func endsProgram(pid int, sig syscall.Signal) bool {
	if sig == unix.SIGKILL {
		return true
	}
	return !inMask(statusField(pid, "SigCgt"), sig) && !inMask(statusField(pid, "SigIgn"), sig)
}

func inMask(hex string, sig syscall.Signal) bool {
	mask, err := strconv.ParseUint(hex, 16, 64)
	return err == nil && mask>>(uint(sig)-1)&1 == 1
}

// unwrapLocked undoes bubblewrap's translation of "ended by signal n" into "exit 128+n", for signals that were sent
// from here and that the program did not handle. A program that handles SIGTERM and exits with 143 is reported so,
// and also one that handles it and then raises it again: that looks the same from here.
func (p *Process) unwrapLocked(st Status) Status {
	if n := st.Code - 128; n > 0 && p.fatal[n] {
		return Status{Code: -1, Signal: syscall.Signal(n).String()}
	}
	return st
}
