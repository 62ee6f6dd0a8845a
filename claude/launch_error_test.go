// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/launch"
)

// answering is a scripted CLI that shakes hands and answers every prompt.
func answering(t *testing.T) *claudetest.ScriptedCLI {
	t.Helper()
	return claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.UntilEOF()
	})
}

func file(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// An error of the start names the cause, the path and the next step.
func TestConnect_LaunchErrorsNameCauseAndFix(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs execute bits: run on Linux or macOS")
	}
	empty, missing := t.TempDir(), filepath.Join(t.TempDir(), "claude")
	plain, text := file(t, "claude", "#!/bin/sh\n", 0o600), file(t, "claude", "just some text\n", 0o700)
	// the header of a program for an architecture that the tests do not run on
	foreign := file(t, "claude", "\x7fELF\x02\x01\x01"+strings.Repeat("\x00", 9)+"\x02\x00\xf3\x00\x01\x00\x00\x00"+strings.Repeat("\x00", 28)+"\x40\x00\x38\x00\x00\x00\x40\x00\x00\x00\x00\x00", 0o700)
	ok := file(t, "claude", "#!/bin/sh\nexec cat\n", 0o700)
	for _, c := range []struct {
		name string
		set  func(t *testing.T, o *claude.Options)
		is   error    // nil where the operating system's own error is wrapped
		says []string // what, where, next
	}{
		{
			"variable names nothing", func(t *testing.T, o *claude.Options) { t.Setenv(claude.EnvCLI, missing) }, claude.ErrCLINotFound,
			[]string{"CLI not found", missing, "next: ", "npm install", "DROVER_CLAUDE"},
		},
		{
			"variable names a file that cannot be run", func(t *testing.T, o *claude.Options) { t.Setenv(claude.EnvCLI, plain) }, claude.ErrNotExecutable,
			[]string{"not executable", plain, "next: chmod +x " + plain, "DROVER_CLAUDE"},
		},
		{"no CLI anywhere", func(t *testing.T, o *claude.Options) {
			t.Setenv(claude.EnvCLI, "")
			t.Setenv("PATH", empty)
			t.Setenv("HOME", empty)
			t.Chdir(empty)
		}, claude.ErrCLINotFound, []string{"CLI not found", "PATH", "next: ", "npm install --global @anthropic-ai/claude-code@" + claude.PinnedVersion, "DROVER_CLAUDE"}},
		{"path to nothing", func(_ *testing.T, o *claude.Options) { o.CLIPath = missing }, claude.ErrCLINotFound, []string{"CLI not found", missing, "next: ", "npm install", "explicit path"}},
		{"path to a directory", func(_ *testing.T, o *claude.Options) { o.CLIPath = empty }, claude.ErrNotExecutable, []string{"directory", empty, "next: name the program inside it"}},
		{"no execute permission", func(_ *testing.T, o *claude.Options) { o.CLIPath = plain }, claude.ErrNotExecutable, []string{"no execute permission", plain, "next: chmod +x"}},
		{"text file", func(_ *testing.T, o *claude.Options) {
			o.CLIPath, o.Spawner = text, claude.HostSpawner{NoPIDNamespace: true}
		}, nil, []string{"exec format error", text, "next: ", "--version"}},
		{"text file in a namespace", func(_ *testing.T, o *claude.Options) { o.CLIPath = text }, claude.ErrNotExecutable, []string{"exec format error", text, "next: ", "--version"}},
		{"program for another machine", func(_ *testing.T, o *claude.Options) {
			o.CLIPath, o.Spawner = foreign, claude.HostSpawner{NoPIDNamespace: true}
		}, nil, []string{"exec format error", foreign, "next: ", "--version"}},
		{"program for another machine in a namespace", func(_ *testing.T, o *claude.Options) { o.CLIPath = foreign }, claude.ErrNotExecutable, []string{"exec format error", "EM_RISCV", foreign, "next: "}},
		{"no directory", func(_ *testing.T, o *claude.Options) { o.CLIPath, o.Dir = ok, missing }, launch.ErrWorkingDir, []string{"working directory", "does not exist", missing, "next: create the directory, or correct its path"}},
		{"directory is a file", func(_ *testing.T, o *claude.Options) { o.CLIPath, o.Dir = ok, plain }, launch.ErrWorkingDir, []string{"working directory", "not a directory", plain, "next: name a directory"}},
		{"spawner fails", func(_ *testing.T, o *claude.Options) {
			o.CLIPath, o.Spawner = ok, launch.SpawnerFunc(func(context.Context, claude.Command) (claude.Process, error) {
				return nil, errors.New("the jail is full")
			})
		}, nil, []string{"starting the CLI", "the jail is full", ok, "next: "}},
		{"spawner fails and knows what to do", func(_ *testing.T, o *claude.Options) {
			o.CLIPath, o.Spawner = ok, launch.SpawnerFunc(func(context.Context, claude.Command) (claude.Process, error) {
				return nil, advice.Wrap(errors.New("the jail is full"), "empty it")
			})
		}, nil, []string{"starting the CLI: the jail is full\n  next: empty it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &claude.Options{}
			c.set(t, o)
			err := connectError(t, o)
			launch, ok := errors.AsType[*claude.LaunchError](err)
			if !ok || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("got %T %v, want a LaunchError of %v", err, err, c.is)
			}
			if launch.Hint == "" || strings.Count(advice.Text(err), "next: ") != 1 {
				t.Errorf("there is no hint, or more than one:\n%v", err)
			}
			for _, text := range c.says {
				if !strings.Contains(advice.Text(err), text) {
					t.Errorf("the error lacks %q:\n%v", text, err)
				}
			}
		})
	}
}

// A program that is not the CLI ends, or stays silent; the errors differ.
func TestConnect_ProgramThatIsNotTheCLI(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell: run on Linux or macOS")
	}
	o := &claude.Options{CLIPath: file(t, "claude", "#!/bin/sh\necho 'token sk-ant-"+"api03-abcdefghijklmnopqrstuvwxyz0123456789 is bad' >&2\nexit 3\n", 0o700), Env: claude.InheritEnv(nil)}
	err := connectError(t, o)
	ended, ok := errors.AsType[*claude.ProcessError](err)
	if !ok || ended.Status.Code != 3 || ended.During != "initialize" || !strings.Contains(advice.Text(err), "standard error: token") {
		t.Errorf("got %v, want a ProcessError of exit 3 during initialize, with its output", err)
	}
	if strings.Contains(advice.Text(err), "abcdefghijklmnop") {
		t.Errorf("the error shows a key: %v", err)
	}
	o = &claude.Options{CLIPath: file(t, "claude", "#!/bin/sh\nexec cat >/dev/null\n", 0o700), InitializeTimeout: 50 * time.Millisecond}
	if _, ok := errors.AsType[*claude.ControlTimeoutError](connectError(t, o)); !ok {
		t.Error("a program that never answers is no ControlTimeoutError")
	}
}

// A dead process is an error of every later call, with the CLI's own reason.
func TestClient_DeadProcessFailsEveryLaterCall(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		s.Stderr("Fatal: out of paper")
		s.Exit(7)
	})
	c := claudetest.Connect(t, cli.Options())
	_, _, err := collect(c.Turn(t.Context(), claude.Text("hi")))
	check := func(what string, err error) {
		t.Helper()
		ended, ok := errors.AsType[*claude.ProcessError](err)
		if !ok || ended.Status.Code != 7 || !strings.Contains(advice.Text(err), "out of paper") || !strings.Contains(advice.Text(err), "exit 7") {
			t.Errorf("%s: got %v, want a ProcessError of exit 7 with the output of the CLI", what, err)
		}
	}
	check("turn", err)
	check("send", c.Send(t.Context(), claude.Text("again")))
	_, err = c.Request(t.Context(), "get_settings", nil)
	check("request", err)
}

// The last output of a dead process decides what to do next.
func TestProcessError_GivesTheNextStep(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  claude.ProcessError
		want string
	}{
		{"root", claude.ProcessError{StderrTail: "--dangerously-skip-permissions cannot be used with root/sudo privileges"}, "ordinary user"},
		{"session in use", claude.ProcessError{StderrTail: "Error: Session ID x is already in use."}, "another SessionID"},
		{"killed", claude.ProcessError{Status: claude.ExitStatus{Code: -1, Signal: "killed"}}, "out-of-memory"},
		{"some complaint", claude.ProcessError{StderrTail: "Error: no"}, "fix the problem that it reports"},
		{"silent at the start", claude.ProcessError{During: "initialize"}, "--version"},
		{"silent later", claude.ProcessError{During: "a turn"}, "Options.Stderr"},
	} {
		if got := advice.Text(&tt.err); !strings.Contains(got, "next: ") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q does not advise %q", tt.name, got, tt.want)
		}
	}
}
