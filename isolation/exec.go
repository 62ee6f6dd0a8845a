// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/launch"
)

// ExecOptions configures [Isolation.Exec].
type ExecOptions struct {
	// Argv is a program and its arguments. A name is looked for in the PATH, a path with a slash in the working directory.
	Argv []string
	// Program is the agent's, in whose workspace the command runs: Dir and AddDirs, which the command can read. The command
	// has the variables of its host, can have none that it refuses, and cannot replace its Path. Find is not asked.
	Program Program
	// ReadOnly keeps the command from writing into the workspace too. The zero value lets it.
	ReadOnly bool
	// Env are further variables. Variables that the isolation depends on or that carry credentials are refused.
	Env map[string]string
	// Timeout is how long the command may take. Zero means 5 minutes.
	Timeout time.Duration
	// MaxOutput is how much of its output is kept, in bytes: the end. Zero means 256 KiB.
	MaxOutput int
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
// The command has the level of the isolation, and less access. Its network is a loopback of its own, its home is
// private and empty, and the cell has no credential and no gateway. Of the host's files the command can write
// only the workspace; it can read Sandbox.WritablePaths. [Limits] hold. All processes of the
// command end with it. Its files in the workspace stay.
//
// At [LevelLandlock] no TCP port can be reached. The CLI's own sandbox does not isolate other programs:
// at [LevelSandbox] a command is refused unless Weakest is [LevelHost]. There it runs
// like any other program of this user, but for its home, its variables and its time.
//
// Exec returns no error for a command that ends by itself, at its timeout ([ExitTimeout]) or at a limit
// ([ExitBreach]); in the last two cases the last line of its output has the reason. The error is for a command that
// could not be run, or whose ctx has ended.
func (i *Isolation) Exec(ctx context.Context, o ExecOptions) (done guard.Executed, err error) {
	if len(o.Argv) == 0 {
		return done, advice.Wrap(errors.New("isolation: Exec has no command"), "give ExecOptions.Argv the program and its arguments")
	}
	c := i.newCell(o.Program, nil)
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

func (c *Cell) startCommand(ctx context.Context, o ExecOptions) (_ launch.Process, err error) {
	if c.level, err = c.decideLevel(ctx, thisMachine(), false); err != nil {
		return nil, err
	}
	if err := errors.Join(c.isolation.Validate(c.level, runtime.GOOS), o.Program.ValidateEnv(c.isolation.Env), o.Program.ValidateEnv(o.Env)); err != nil {
		return nil, err
	}
	if err := c.openWorkspace(o.Program.Dir); err != nil {
		return nil, err
	}
	if c.home, err = NewHome(HomeOptions{TempDir: c.isolation.TempDir, Prefix: c.isolation.HomePrefix}); err != nil {
		return nil, err
	}
	c.onClose(c.home.Close)
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

func (c *Cell) commandEnv(given map[string]string) (all []string, err error) {
	env, err := c.isolation.BuildEnv(c.level)
	if err != nil {
		return nil, err
	}
	for _, vars := range []map[string]string{env.Vars, given, c.ownVariables(env.Path)} {
		for name, value := range vars {
			all = append(all, name+"="+value)
		}
	}
	return append(all, "PWD="+c.dir), nil
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

func (c *Cell) await(ctx context.Context, p launch.Process, o ExecOptions) (guard.Executed, error) {
	limit := cmp.Or(o.Timeout, defaultExecTime)
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(within, func() { _ = p.Kill() })()
	_ = p.Stdin().Close()
	output := &tail{max: max(cmp.Or(o.MaxOutput, defaultExecOutput), 0)}
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
		why := breach.Error() // its advice is not for the agent
		return output.ended(ExitBreach, strings.TrimPrefix(why, "isolation: ")), nil
	case within.Err() != nil && (status.Code < 0 || status.Code == killedByKernel):
		return output.ended(ExitTimeout, fmt.Sprintf(textTimeout, limit)), nil
	}
	return output.executed(exitCode(status)), nil
}

// exitCode is how a command ended, as shells report it.
func exitCode(s launch.ExitStatus) int {
	if s.Code < 0 {
		return killedByKernel
	}
	return s.Code
}
