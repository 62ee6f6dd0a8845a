// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/proc"
)

// endlessly is a model that has the CLI run a command which does not end by itself.
func endlessly(t *testing.T) *claudetest.Model {
	t.Helper()
	return claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "touch begun; tail -f /dev/null", "description": "wait", "timeout": 600_000}),
		script.Text("It ended.").Always())
}

// awaitFile waits until the command of the model runs.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	t.Fatalf("%s did not appear: the command was not started", path)
}

// Ctrl-C stops the turn, the summary still comes, and nothing is left of a command that runs.
func TestSignals_FirstStopsTheTurnAndPrintsTheSummary(t *testing.T) {
	for name, c := range map[string]struct {
		signal os.Signal
		args   []string
	}{
		"ctrl-C":                   {os.Interrupt, nil},
		"SIGTERM":                  {syscall.SIGTERM, nil},
		"ctrl-C without isolation": {os.Interrupt, []string{"--isolation", "host"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t, endlessly(t).URL())
			r := p.start(append([]string{"run", "--json", "--allow", "shellExecute"}, append(c.args, "Wait.")...)...)
			awaitFile(t, filepath.Join(p.cli.Work, "begun"))
			seenAtWork(t, p)
			at := time.Now()
			r.signal(c.signal)
			got := r.wait()
			if took := time.Since(at); got.code != exitInterrupted || took > 10*time.Second {
				t.Errorf("exit code %d after %v, want 130 soon", got.code, took)
			}
			validate := eventValidator(t)
			for line := range strings.Lines(got.out) {
				validate(line)
			}
			done, is := lastEvent(t, got.out).Payload.(event.Done)
			if !is || done.Status != event.DoneInterrupted || !strings.Contains(done.Reason, c.signal.String()) {
				t.Errorf("the last event is %+v, want the end with its reason", done)
			}
			if want := "drover: stopping Bash: touch begun; tail -f /dev/null ...\ndrover: stopped; the CLI "; !strings.Contains(got.errors, want) {
				t.Errorf("stderr %q, want %q", got.errors, want)
			}
		})
	}
}

// seenAtWork fails the test if the search for what is left sees nothing while there is something.
func seenAtWork(t *testing.T, p *program) {
	t.Helper()
	if len(workingBelow(p.cli.Root)) < 2 {
		t.Error("the command is not seen while it runs: the search for what is left sees nothing")
	}
}

// The second ctrl-C does not wait for an agent that hangs. The summary has come before.
func TestSignals_SecondKills(t *testing.T) {
	for name, args := range map[string][]string{"default": nil, "without isolation": {"--isolation", "host"}} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t, endlessly(t).URL())
			r := p.start(append([]string{"run", "--json", "--allow", "shellExecute"}, append(args, "Wait.")...)...)
			awaitFile(t, filepath.Join(p.cli.Work, "begun"))
			freeze(t, p, r)
			r.signal(os.Interrupt)
			r.awaitLine(`"type":"done"`)
			time.Sleep(100 * time.Millisecond)
			seenAtWork(t, p) // the first one waits
			at := time.Now()
			r.signal(os.Interrupt)
			for range 3 { // a person hammers on the key; it may be over already
				time.Sleep(time.Millisecond)
				_ = r.cmd.Process.Signal(os.Interrupt)
			}
			got := r.wait()
			if took := time.Since(at); got.code != exitInterrupted || took > 4*time.Second {
				t.Errorf("exit code %d after %v, want 130 at once; stderr: %s", got.code, took, got.errors)
			}
		})
	}
}

// freeze stops all that drover has started, so that it reacts to nothing.
func freeze(t *testing.T, p *program, r *running) {
	t.Helper()
	frozen := 0
	for _, link := range workingBelow(p.cli.Root) {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil || pid == r.cmd.Process.Pid {
			continue
		}
		if syscall.Kill(pid, syscall.SIGSTOP) == nil {
			frozen++
		}
	}
	if frozen == 0 {
		t.Fatal("nothing to freeze was found")
	}
}

// A program that is killed takes the agent and its commands along. The next one clears up after it.
func TestSignals_NoProcessOutlivesDrover(t *testing.T) {
	if !proc.NamespaceAvailable(t.Context(), "") {
		t.Skip("needs bubblewrap: apt-get install bubblewrap")
	}
	p := newProgram(t, endlessly(t).URL())
	r := p.start("run", "--json", "--allow", "shellExecute", "Wait.")
	awaitFile(t, filepath.Join(p.cli.Work, "begun"))
	seenAtWork(t, p)
	r.signal(os.Kill)
	p.grace, p.leaves = 5*time.Second, true // the kernel ends the rest, and no process waits for it
	if got := r.wait(); got.code != -1 {
		t.Errorf("got %+v, want the end by a signal", got)
	}
	if left, _ := filepath.Glob(filepath.Join(p.cli.Temp, "drover-home-*")); len(left) == 0 {
		t.Error("no home is left: there is nothing to clear up, and the test sees nothing")
	}
	p.leaves = false
	p.setEnv(claudetest.NewModel(t, script.Text("Hello.")).Env())
	if got := p.run("run", "--quiet", "Hello?"); got.code != 0 {
		t.Errorf("got %+v, want a run that clears up", got)
	}
}

// A reader who leaves, like head -1, ends the run.
func TestSignals_ClosedPipeEndsTheRun(t *testing.T) {
	for name, flags := range map[string][]string{"json": {"--json"}, "lines": nil} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t,
				script.Call("Bash", script.Input{"command": "echo hello", "description": "say hello"}),
				script.Call("Bash", script.Input{"command": "tail -f /dev/null", "description": "wait", "timeout": 600_000}))
			p := newProgram(t, model.URL())
			r := p.start(append(append([]string{"run"}, flags...), "--allow", "shellExecute", "Wait.")...)
			r.awaitLine("")
			_ = r.closeStdout()
			at := time.Now()
			got := r.wait()
			if took := time.Since(at); got.code != exitError || took > 15*time.Second {
				t.Errorf("exit code %d after %v, want 1 soon", got.code, took)
			}
			if !strings.Contains(got.errors, "no program reads the output any more, so the run was stopped") {
				t.Errorf("stderr %q does not report why", got.errors)
			}
		})
	}
}
