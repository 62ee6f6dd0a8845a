// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

type tree struct {
	ns *namespace // nil: process group and /proc walk
}

// Namespaced reports whether the program runs in a PID namespace of its own.
func (p *Process) Namespaced() bool { return p.tree.ns != nil }

func start(ctx context.Context, s Spec) (*Process, error) {
	if bwrap := usableBwrap(ctx, s); bwrap != "" {
		return startInNamespace(ctx, s, bwrap)
	}
	p, ends, err := newProcess(s, s.Path, s.Args)
	if err != nil {
		return nil, err
	}
	p.cmd.SysProcAttr = attributes(s)
	if err := p.launch(ends, nil, nil); err != nil {
		return nil, startError(s.Path, err)
	}
	return p, nil
}

// attributes asks for a process group and for death together with the starting thread.
func attributes(s Spec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c := s.Credential; c != nil {
		a.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
	}
	return a
}

// launch starts the command on a thread of its own and keeps that thread until the program is
// reaped: the kernel ties the parent death signal to the thread that forked, not to the process.
// The function prepare, if not nil, runs there before the start, and the thread ends with the program
// then; started runs there after a good start and before anything is waited for.
func (p *Process) launch(ends *childEnds, prepare, started func() error) error {
	result := make(chan error)
	run := func() {
		err := p.startHere(ends, prepare)
		if err != nil {
			result <- err
			return
		}
		if started != nil {
			err = started()
		}
		if err != nil {
			_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
		}
		result <- err
		p.reap()
	}
	if prepare != nil {
		onThrowawayThread(run)
	} else {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			run()
		}()
	}
	return <-result
}

func (p *Process) startHere(ends *childEnds, prepare func() error) error {
	defer ends.close()
	var err error
	if prepare != nil {
		err = prepare()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.abandon()
	}
	return err
}

// onThrowawayThread runs f on a thread that ends with it. The first thread of the process cannot end,
// and /proc/self shows its state as that of the whole process, so it is left out.
func onThrowawayThread(f func()) {
	taken := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			onThrowawayThread(f) // cannot meet this thread, which is taken until then
			runtime.UnlockOSThread()
			close(taken)
			return
		}
		close(taken)
		f() // the lock is never given back: the thread ends here
	}()
	<-taken
}

func (p *Process) reap() {
	pid := p.cmd.Process.Pid
	waitable(pid)
	p.mu.Lock()
	// The group keeps the pid from being used again until it is reaped below, so this can only
	// meet what the program left behind.
	_ = unix.Kill(-pid, unix.SIGKILL)
	_ = p.cmd.Wait()
	p.reaped = true
	st := statusOf(p.cmd)
	if p.tree.ns != nil {
		st = p.unwrapLocked(st)
	}
	p.mu.Unlock()
	if p.tree.ns != nil {
		p.tree.ns.awaitEmpty()
	}
	p.finish(st)
}

// waitable blocks until pid has ended, and leaves it unreaped.
func waitable(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (p *Process) signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return errors.New("signal " + sig.String() + " is not one of this system")
	}
	if p.tree.ns != nil {
		return p.signalInside(number)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	return p.cmd.Process.Signal(sig)
}

func (p *Process) killTreeLocked() error {
	p.fatal[int(unix.SIGKILL)] = true
	pid := p.cmd.Process.Pid
	if p.tree.ns != nil {
		p.tree.ns.kill()
	} else {
		killDescendants(pid)
	}
	if err := unix.Kill(-pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
