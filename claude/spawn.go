// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"fmt"
	"io"
	"os"
)

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

// A Process is a started CLI. All its methods are safe to call from several goroutines.
type Process interface {
	// Stdin is the program's standard input. Closing it asks the program to end.
	Stdin() io.WriteCloser
	// Stdout is the program's standard output; it reports io.EOF when the program has ended.
	Stdout() io.Reader
	// Stderr is the program's standard error, or nil where it cannot be had.
	Stderr() io.Reader
	// Signal sends sig to the program itself, not to what it started.
	Signal(sig os.Signal) error
	// Kill ends the program and everything it started, at once. It is safe to call repeatedly
	// and after the program has ended.
	Kill() error
	// Wait blocks until the program has ended and is reaped. Every call returns the same status.
	Wait() ExitStatus
}

// A Spawner starts the CLI. The default one is [HostSpawner]; a jail or a remote machine brings
// its own.
type Spawner interface {
	// Spawn starts cmd. The context covers the start only: the process outlives it.
	Spawn(ctx context.Context, cmd Command) (Process, error)
}

// SpawnerFunc makes a function a [Spawner].
type SpawnerFunc func(ctx context.Context, cmd Command) (Process, error)

// Spawn calls f.
func (f SpawnerFunc) Spawn(ctx context.Context, cmd Command) (Process, error) { return f(ctx, cmd) }

// An ExitStatus says how a process ended.
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
