// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/launch"
)

// ExecOptions say which command is run beside an agent, and where.
type ExecOptions struct {
	// Argv is the command: a program and its arguments. A name without a slash is looked for in the PATH, one
	// with a slash in the working directory.
	Argv []string
	// Dir is the workspace, in which the command is run. Empty means the current directory.
	Dir string
	// AddDirs are further folders of the agent, which the command can read.
	AddDirs []string
	// ReadOnly keeps the command from writing into the workspace too. The zero value lets it.
	ReadOnly bool
	// Env are further variables. Those that hold the walls or carry credentials are refused.
	Env map[string]string
	// Timeout is how long the command may take. Zero means 5 minutes.
	Timeout time.Duration
	// MaxOutput is how much of its output is kept, in bytes: the end. Zero means 256 KiB.
	MaxOutput int
	// CLI is the agent's program, which the command must not replace. Empty means that it is not in Dir.
	CLI string
}

const (
	defaultExecTime   = 5 * time.Minute
	defaultExecOutput = 256 << 10
)

// The exit codes of a command that did not end by itself, as shells have them.
const (
	ExitTimeout = 124 // its time was over
	ExitBreach  = 137 // it went beyond the Limits
)

// Exec runs a command in a cell of its own over the workspace of an agent: the command may be one that the
// agent wrote, and is trusted no more than it. A nil Isolation is the default one.
//
// The walls are those of the isolation's level, but narrower: there is no network but a loopback of its own,
// the home is private and empty, no credential and no gateway is inside, and of the host's files only the
// workspace can be written: Sandbox.WritablePaths can be read. [Limits] hold. What the command has started
// ends with it. What it has written into the workspace stays.
//
// At [LevelLandlock] no TCP port can be reached. The CLI's own sandbox is not around other programs: at
// [LevelSandbox] there is no wall for a command, and it is refused unless Weakest is [LevelHost]. There it runs
// like any other program of this user, but for its home, its variables and its time.
//
// A command that ends by itself, is ended because its time is over ([ExitTimeout]) or because it went beyond a
// limit ([ExitBreach]) has no error: its output then ends with a line that says so. The error is for one that
// could not be run, or whose ctx has ended.
func (i *Isolation) Exec(ctx context.Context, o ExecOptions) (done guard.Executed, err error) {
	if len(o.Argv) == 0 {
		return done, errors.New("isolation: Exec has no command\n  next: give ExecOptions.Argv the program and its arguments")
	}
	if i == nil {
		i = &Isolation{}
	}
	c := &Cell{isolation: *i, emit: func(event.Payload) {}, cli: o.CLI}
	c.open, c.end = context.WithCancel(context.Background())
	defer func() { err = errors.Join(err, c.Close()) }()
	p, err := c.startCommand(ctx, o)
	switch {
	case err != nil && ctx.Err() != nil:
		return done, context.Cause(ctx)
	case err != nil:
		return done, err
	}
	return c.await(ctx, p, o)
}

// startCommand does everything up to the start.
func (c *Cell) startCommand(ctx context.Context, o ExecOptions) (_ launch.Process, err error) {
	if c.level, err = c.commandLevel(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(c.isolation.Validate(c.level, runtime.GOOS), validateEnv(o.Env)); err != nil {
		return nil, err
	}
	if err := c.openWorkspace(o.Dir); err != nil {
		return nil, err
	}
	if err := c.openEmptyHome(); err != nil {
		return nil, err
	}
	env, err := c.commandEnv(o.Env)
	if err != nil {
		return nil, err
	}
	path, args, err := command(o.Argv)
	if err != nil {
		return nil, err
	}
	return c.spawnCommand(ctx, o, launch.Command{Path: path, Args: args, Dir: c.dir, Env: env})
}

// commandLevel is the level of the walls around a command.
func (c *Cell) commandLevel(ctx context.Context) (Level, error) {
	level, err := c.decideLevel(ctx, thisMachine())
	if err != nil || level != LevelSandbox {
		return level, err
	}
	if c.isolation.Weakest < LevelHost {
		return level, &RefusedError{
			Field: "Weakest", Reason: "the sandbox of the CLI is not around other programs, so that a command would have no walls",
			Level: level, GOOS: runtime.GOOS, Next: "run where a cell can be had, or say by another function how commands are run",
		}
	}
	return LevelHost, nil
}

// openEmptyHome makes a home without anything of an agent's.
func (c *Cell) openEmptyHome() error {
	folder, err := homes.Make(c.isolation.TempDir)
	if err != nil {
		return fmt.Errorf("isolation: a private home for the command: %w\n  next: set Isolation.TempDir to a folder that can be written to", err)
	}
	c.home = &Home{folder}
	c.onClose(c.home.Close)
	return os.Mkdir(c.home.TempDir(), 0o700)
}

// commandEnv is the whole environment of a command.
func (c *Cell) commandEnv(given map[string]string) (all []string, err error) {
	env, err := c.isolation.BuildEnv(c.level)
	if err != nil {
		return nil, err
	}
	for _, vars := range []map[string]string{env.Vars, given} {
		for name, value := range vars {
			all = append(all, name+"="+value)
		}
	}
	return append(all, "PATH="+env.Path, "HOME="+c.home.Path(), "TMPDIR="+c.temp(), "PWD="+c.dir), nil
}

// command is the program to start. On Unix it is a shell, which becomes the command: so that names are looked
// for as they are found inside, and a command that is not there is one that fails.
func command(argv []string) (path string, args []string, err error) {
	if runtime.GOOS != "windows" {
		return "/bin/sh", append([]string{"-c", `exec "$@"`, "sh"}, argv...), nil
	}
	path, err = exec.LookPath(argv[0])
	return path, argv[1:], err
}

// await waits for the end of a command and takes its output.
func (c *Cell) await(ctx context.Context, p launch.Process, o ExecOptions) (guard.Executed, error) {
	limit := cmp.Or(o.Timeout, defaultExecTime)
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(within, func() { _ = p.Kill() })()
	_ = p.Stdin().Close()
	output := newTail(cmp.Or(o.MaxOutput, defaultExecOutput))
	output.drain(p.Stdout(), p.Stderr())
	status := p.Wait()
	if ctx.Err() != nil {
		return guard.Executed{}, context.Cause(ctx)
	}
	c.mu.Lock()
	breach := c.breach
	c.mu.Unlock()
	switch {
	case breach != nil:
		why, _, _ := strings.Cut(breach.Error(), "\n") // what is next is not for the agent to do
		return output.ended(ExitBreach, strings.TrimPrefix(why, "isolation: ")), nil
	case within.Err() != nil && (status.Code < 0 || status.Code == killedByKernel):
		return output.ended(ExitTimeout, fmt.Sprintf("it was ended after %v", limit)), nil
	}
	return output.executed(exitCode(status)), nil
}

// exitCode is how a command ended, as a shell would say it.
func exitCode(s launch.ExitStatus) int {
	if s.Code < 0 {
		return killedByKernel
	}
	return s.Code
}
