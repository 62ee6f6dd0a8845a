// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package proc

import (
	"context"
	"errors"
	"os"
	"syscall"
)

type tree struct{}

// Namespaced reports false: there are no PID namespaces here.
func (p *Process) Namespaced() bool { return false }

// NamespaceAvailable reports false: there are no PID namespaces here.
func NamespaceAvailable(context.Context, string) bool { return false }

func start(_ context.Context, s Spec) (*Process, error) {
	p, ends, err := newProcess(s, s.Path, s.Args)
	if err != nil {
		return nil, err
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c := s.Credential; c != nil {
		p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
	}
	err = p.cmd.Start()
	ends.close()
	if err != nil {
		p.abandon()
		return nil, startError(s.Path, err)
	}
	go p.reap()
	return p, nil
}

// reap waits for the program, takes its status and ends what is left of its group. A group that
// still has members keeps its number, so the late kill reaches no other process.
func (p *Process) reap() {
	_ = p.cmd.Wait()
	p.mu.Lock()
	p.reaped = true
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.mu.Unlock()
	p.finish(statusOf(p.cmd))
}

func (p *Process) signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

func (p *Process) killTreeLocked() error {
	err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) {
		// EPERM is how darwin answers for a group of zombies.
		return nil
	}
	return err
}
