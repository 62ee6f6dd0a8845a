// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// asCommand is the variable that makes this test program the drover command. With the value "all" the programs that it starts are too.
const asCommand = "DROVER_TEST_AS_COMMAND"

// Here and not in TestMain, since nothing of a test may happen before.
func init() {
	if as := os.Getenv(asCommand); as != "" {
		if as != "all" {
			_ = os.Unsetenv(asCommand)
		}
		main()
	}
}

// A program is the drover command as a process of its own, with the pinned CLI, in the folders of the
// test and with no variable of the caller's but PATH.
type program struct {
	t     testing.TB
	cli   *claudetest.RealCLI
	env   map[string]string
	stdin string        // what it reads
	grace time.Duration // how long what it started may live on
	// leaves says that it cannot clear up after itself, since it is killed, or is not to.
	leaves bool
}

// newProgram has the model that the environment names, as users have it.
func newProgram(t testing.TB, url string) *program {
	t.Helper()
	cli := claudetest.CLI(t)
	env := cli.Env(url)
	delete(env, "IS_SANDBOX") // users have none
	env[claude.EnvCLI] = cli.Path
	env[asCommand] = "1"
	return &program{t: t, cli: cli, env: env}
}

// ended is what a process left.
type ended struct {
	code        int
	out, errors string
	took        time.Duration
}

// run runs the command to its end, and fails the test if it leaves a process or a file.
func (p *program) run(args ...string) ended {
	p.t.Helper()
	r := p.start(args...)
	_, _ = io.Copy(&r.seen, r.stdout)
	return r.wait()
}

// start starts the command.
func (p *program) start(args ...string) *running {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	r := &running{program: p, cmd: exec.Command(self, args...), began: time.Now()}
	r.cmd.Dir = p.cli.Work
	r.cmd.Stdin = strings.NewReader(p.stdin)
	r.cmd.Stderr = &r.stderr
	for name, value := range p.env {
		r.cmd.Env = append(r.cmd.Env, name+"="+value)
	}
	pipe, err := r.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	r.stdout = bufio.NewReader(pipe)
	r.closeStdout = pipe.Close
	if err := r.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = r.cmd.Process.Kill() }) // for tests that fail
	return r
}

// running is a command that has been started.
type running struct {
	program     *program
	cmd         *exec.Cmd
	began       time.Time
	stdout      *bufio.Reader
	closeStdout func() error
	seen        bytes.Buffer // of standard output
	stderr      bytes.Buffer
}

// awaitLine reads standard output until a line has the words.
func (r *running) awaitLine(words string) {
	r.program.t.Helper()
	for {
		line, err := r.stdout.ReadString('\n')
		r.seen.WriteString(line)
		if strings.Contains(line, words) {
			return
		}
		if err != nil {
			got := r.wait()
			r.program.t.Fatalf("no line has %q; exit code %d, stdout:\n%s\nstderr:\n%s", words, got.code, got.out, got.errors)
		}
	}
}

func (r *running) signal(s os.Signal) {
	r.program.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.program.t.Fatal(err)
	}
}

// wait reads the rest and waits for the end.
func (r *running) wait() ended {
	t := r.program.t
	t.Helper()
	_, _ = io.Copy(&r.seen, r.stdout)
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r.program.checkNothingLeft()
	return ended{r.cmd.ProcessState.ExitCode(), r.seen.String(), r.stderr.String(), time.Since(r.began)}
}

// checkNothingLeft fails the test for processes in its folders and for private homes.
func (p *program) checkNothingLeft() {
	p.t.Helper()
	left := workingBelow(p.cli.Root)
	for deadline := time.Now().Add(p.grace); len(left) > 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		left = workingBelow(p.cli.Root)
	}
	if len(left) > 0 {
		p.t.Errorf("processes are left: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(p.cli.Temp, "*")); len(left) > 0 && !p.leaves {
		p.t.Errorf("files are left: %v", left)
	}
}

// setEnv lays variables over the environment; empty ones are removed.
func (p *program) setEnv(vars map[string]string) *program {
	maps.Copy(p.env, vars)
	maps.DeleteFunc(p.env, func(_, value string) bool { return value == "" })
	return p
}
