// SPDX-License-Identifier: Apache-2.0

// Package launch starts the programs of agents.
package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/drover-agents/drover/advice"
)

// Conditions that callers test for with errors.Is.
var (
	// ErrNotFound is returned when there is no program under the given path.
	ErrNotFound = errors.New("program not found")
	// ErrNotExecutable is returned when a program exists but cannot be run.
	ErrNotExecutable = errors.New("program is not executable")
	// ErrWorkingDir is returned when the working directory does not exist or is not a directory.
	ErrWorkingDir = errors.New("working directory is not usable")
)

// An Error is why a program could not be started. It wraps one of [ErrNotFound], [ErrNotExecutable],
// [ErrWorkingDir], or the error of the operating system or the [Spawner].
type Error struct {
	Path string // program, or working directory, that was tried
	Err  error
	Hint string // what to do next
}

func (e *Error) Error() string {
	s := e.Err.Error()
	if advice.Of(e.Err) != "" { // the cause states where
		return s
	}
	if e.Path != "" {
		s += ": " + e.Path
	}
	return s
}

// Advice implements [advice.Adviser].
func (e *Error) Advice() string { return cmp.Or(advice.Of(e.Err), e.Hint) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A Command is what a [Spawner] is asked to start: one program, its exact argument list and its
// exact environment. Nothing is added to Env by the spawner.
type Command struct {
	// Path is the absolute path of the program.
	Path string
	// Args are the arguments after the program name.
	Args []string
	// Dir is the working directory; empty means the current one.
	Dir string
	// Env is the whole environment as "NAME=value" entries, last one wins.
	Env []string
}

// A Process is a started program. All its methods are safe to call from several goroutines.
type Process interface {
	// Stdin is the program's standard input. Closing it asks the program to end.
	Stdin() io.WriteCloser
	// Stdout is the program's standard output; it reports io.EOF when the program has ended.
	Stdout() io.Reader
	// Stderr is the program's standard error, or nil where it cannot be had.
	Stderr() io.Reader
	// Signal sends sig to the program itself, not to what it started.
	Signal(sig os.Signal) error
	// Kill ends the program and everything it started, at once. It may be called repeatedly and after the end.
	Kill() error
	// Wait blocks until the program has ended and is reaped. Every call returns the same status.
	Wait() ExitStatus
}

// A Spawner starts programs. The default one is [HostSpawner]; a jail or a remote machine brings its own.
type Spawner interface {
	// Spawn starts cmd. The context covers the start only: the process outlives it.
	Spawn(ctx context.Context, cmd Command) (Process, error)
}

// SpawnerFunc makes a function a [Spawner].
type SpawnerFunc func(ctx context.Context, cmd Command) (Process, error)

// Spawn calls f.
func (f SpawnerFunc) Spawn(ctx context.Context, cmd Command) (Process, error) { return f(ctx, cmd) }

// An ExitStatus is how a process ended.
type ExitStatus struct {
	// Code is the exit code, or -1 if a signal ended the process or the code is not known.
	Code int
	// Signal names the signal that ended the process ("killed"), or is empty.
	Signal string
}

// String describes the status in words: "exit 1" or "signal: killed".
func (s ExitStatus) String() string {
	if s.Signal != "" {
		return "signal: " + s.Signal
	}
	return fmt.Sprintf("exit %d", s.Code)
}
