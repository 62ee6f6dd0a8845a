// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"context"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
)

// A CLIScript plays the CLI's part. It runs on a goroutine of its own, or in a process of its own
// with [RunScript]; when it returns, the CLI exits with code 0.
type CLIScript func(s *ScriptSession)

// ScriptCLI is a scripted replacement of the CLI: a spawner whose processes are in memory and run
// script. It is for faults that the real CLI does not produce on demand; test everything else with
// [CLI]. It works inside a testing/synctest bubble.
//
// At the end of the test every process that was started must have ended.
func ScriptCLI(t testing.TB, script CLIScript) *ScriptedCLI {
	t.Helper()
	path, err := os.Executable() // must exist, is never run
	if err != nil {
		t.Fatalf("claudetest: %s", advice.Text(err))
	}
	cli := &ScriptedCLI{t: t, script: script, path: path}
	t.Cleanup(cli.check)
	return cli
}

// A ScriptedCLI is a [claude.Spawner] made by [ScriptCLI].
type ScriptedCLI struct {
	t      testing.TB
	script CLIScript
	path   string

	mu    sync.Mutex
	procs []*scriptProcess
}

// Options returns options that use the scripted CLI.
func (c *ScriptedCLI) Options() *claude.Options {
	return &claude.Options{CLIPath: c.path, Spawner: c, Env: claude.ExactEnv(nil)}
}

// Spawn starts the script. It implements [claude.Spawner].
func (c *ScriptedCLI) Spawn(_ context.Context, cmd claude.Command) (claude.Process, error) {
	p := &scriptProcess{cmd: cmd, stdin: newPipe(), stdout: newPipe(), stderr: newPipe(), done: make(chan struct{})}
	c.mu.Lock()
	c.procs = append(c.procs, p)
	c.mu.Unlock()
	s := newScriptSession(p.stdin, p.stdout, p.stderr)
	s.proc = p
	go p.run(c.script, s)
	return p, nil
}

// Commands are the commands that were started so far, with their arguments and environment.
func (c *ScriptedCLI) Commands() []claude.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	var cmds []claude.Command
	for _, p := range c.procs {
		cmds = append(cmds, p.cmd)
	}
	return cmds
}

func (c *ScriptedCLI) check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range c.procs {
		select {
		case <-p.done:
		default:
			c.t.Errorf("claudetest: scripted CLI %d is still running at the end of the test: close the client", i)
			_ = p.Kill()
		}
	}
}

type scriptProcess struct {
	cmd                   claude.Command
	stdin, stdout, stderr *pipe

	once   sync.Once
	done   chan struct{}
	status claude.ExitStatus

	mu      sync.Mutex
	ignores bool // the script lives through SIGTERM
}

func (p *scriptProcess) Stdin() io.WriteCloser { return p.stdin }
func (p *scriptProcess) Stdout() io.Reader     { return p.stdout }
func (p *scriptProcess) Stderr() io.Reader     { return p.stderr }

func (p *scriptProcess) Signal(sig os.Signal) error {
	p.mu.Lock()
	ignores := p.ignores
	p.mu.Unlock()
	select {
	case <-p.done:
		return os.ErrProcessDone
	default:
	}
	if sig == syscall.SIGTERM && !ignores {
		p.exit(claude.ExitStatus{Code: 143})
	}
	return nil
}

func (p *scriptProcess) Kill() error {
	p.exit(claude.ExitStatus{Code: -1, Signal: "killed"})
	return nil
}

func (p *scriptProcess) Wait() claude.ExitStatus {
	<-p.done
	return p.status
}

func (p *scriptProcess) exit(status claude.ExitStatus) {
	p.once.Do(func() {
		p.status = status
		p.stdin.closeRead()
		_ = p.stdout.Close()
		_ = p.stderr.Close()
		close(p.done)
	})
}

func (p *scriptProcess) run(script CLIScript, s *ScriptSession) {
	defer p.exit(claude.ExitStatus{Code: 0})
	script(s)
}

// RunScript plays script on the standard streams of this process and returns its exit code. A test
// binary that calls it from TestMain can be started as a CLI, for faults that need a real process.
func RunScript(script CLIScript) (code int) {
	s := newScriptSession(os.Stdin, os.Stdout, os.Stderr)
	done := make(chan struct{})
	go func() { // of its own, because Exit ends the goroutine it is called on
		defer close(done)
		script(s)
	}()
	<-done
	return s.code
}
