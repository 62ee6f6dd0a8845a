// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/drover-agents/drover/advice"
)

// ErrEnded is returned by writes to the stdin of a program that has ended. It comes wrapped
// together with the error of the operating system where there was one.
var ErrEnded = errors.New("the program has ended")

// A Spec describes the program to start.
type Spec struct {
	Path string
	Args []string // after the program name
	Dir  string   // empty means the current directory
	Env  []string // the whole environment; nil means empty, not inherited
	// Credential is the OS user to run as. Nil means the current one.
	Credential *Credential
	// NoPIDNamespace keeps the program out of a PID namespace of its own.
	NoPIDNamespace bool
	// BwrapPath is the bubblewrap to use. Empty means the one on this process's PATH, if any.
	BwrapPath string
	// Files are further descriptors, numbered from 3. They remain the caller's, and need NoPIDNamespace. Not on Windows.
	Files []*os.File
}

// A Credential is a numeric OS user.
type Credential struct {
	UID, GID uint32
	Groups   []uint32
}

// A Status is how a program ended.
type Status struct {
	Code   int    // -1 if a signal ended it
	Signal string // "killed", or empty
}

// A Process is a started program.
type Process struct {
	cmd    *exec.Cmd
	stdin  *inPipe
	stdout *outPipe
	stderr *outPipe
	tree   tree
	held   *os.File // open until the program has ended; nil for none
	done   chan struct{}
	status Status // set before done is closed

	mu     sync.Mutex
	reaped bool // the pid may belong to another process from now on
	// fatal holds the signals that were sent to the program while it had no handler for them.
	fatal map[int]bool
}

// Start starts the program of s. The context covers the start only.
func Start(ctx context.Context, s Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(s.Dir) // an empty Dir gives the current directory
	if err != nil {
		return nil, err
	}
	s.Dir = dir
	if len(s.Files) > 0 && !s.NoPIDNamespace {
		return nil, startError(s.Path, advice.Wrap(errors.New("files cannot be handed into a PID namespace"), "set NoPIDNamespace"))
	}
	if s.Env == nil {
		s.Env = []string{}
	}
	return start(ctx, s)
}

func newProcess(s Spec, path string, args []string) (*Process, *childEnds, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = s.Dir, s.Env, s.Files
	in, out, errs, ends, err := openPipes()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ends.files[0], ends.files[1], ends.files[2]
	return &Process{
		cmd: cmd, stdin: in, stdout: out, stderr: errs,
		done: make(chan struct{}), fatal: map[int]bool{},
	}, ends, nil
}

func (p *Process) abandon() {
	_ = p.stdin.file.Close()
	_ = p.stdout.file.Close()
	_ = p.stderr.file.Close()
	_ = p.held.Close()
}

// finish publishes the end of the program; the waiting goroutine calls it once.
func (p *Process) finish(st Status) {
	p.status = st
	p.stdin.programEnded()
	p.stdout.programEnded()
	p.stderr.programEnded()
	_ = p.held.Close()
	close(p.done)
}

// PID is the process that was started: the program itself, or bubblewrap around it. Once it has ended,
// the number may belong to another process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stdin returns the program's standard input. Closing it is safe while a write is blocked.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout returns the program's standard output.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Stderr returns the program's standard error.
func (p *Process) Stderr() io.Reader { return p.stderr }

// Done is closed when the program has ended and is reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the program has ended and is reaped.
func (p *Process) Wait() Status {
	<-p.done
	return p.status
}

// Signal sends sig to the program itself. After its end the error is os.ErrProcessDone.
func (p *Process) Signal(sig os.Signal) error {
	select {
	case <-p.done:
		return os.ErrProcessDone
	default:
	}
	return p.signal(sig)
}

// Kill ends the program and everything it started.
func (p *Process) Kill() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return p.killTreeLocked()
}

func statusOf(cmd *exec.Cmd) Status {
	if cmd.ProcessState == nil {
		return Status{Code: -1}
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Status{Code: -1, Signal: ws.Signal().String()}
	}
	return Status{Code: cmd.ProcessState.ExitCode()}
}

func startError(path string, err error) error {
	return fmt.Errorf("starting %s: %w", path, err)
}
