// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/internal/testkit"
)

// startOnTerminal runs the command in a real terminal.
func (p *program) startOnTerminal(t *testing.T, args ...string) *testkit.Pane {
	t.Helper()
	return p.startOn(t, 100, 40, args...)
}

// startOn is startOnTerminal in a terminal of a size.
func (p *program) startOn(t *testing.T, columns, rows int, args ...string) *testkit.Pane {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "(cd %s && env -i TERM=xterm-256color", p.cli.Work)
	for name, value := range p.env {
		fmt.Fprintf(&b, " '%s=%s'", name, value)
	}
	fmt.Fprintf(&b, " %s '%s')", self, strings.Join(args, "' '"))
	return testkit.OpenPane(t, columns, rows, b.String())
}

func bashCall(command string) script.Turn {
	return script.Call("Bash", script.Input{"command": command, "description": "do it"})
}

func TestTerminal_PersonDecides(t *testing.T) {
	model := claudetest.NewModel(t, bashCall("touch one.txt"), bashCall("touch two.txt"), script.Text("One of two."))
	p := newProgram(t, model.URL())
	screen := p.startOnTerminal(t, "run", "Do it.")
	screen.Wait(`Bash wants to run: touch one.txt +\[y\]`)
	screen.Keys("y")
	screen.Wait(`Bash wants to run: touch two.txt +\[y\]`)
	screen.Keys("n")
	text := strings.Join(screen.Over(exitDenied), "\n")
	if !strings.Contains(text, "One of two.") || !strings.Contains(text, "The user denied this call of Bash.\n") || !strings.Contains(text, "drover: the agent came to its end, but 1 tool call was denied: Bash (1)") {
		t.Errorf("want the answer, and what was denied:\n%s", text)
	}
	checkFiles(t, p.cli.Work, "one.txt")
	p.checkNothingLeft()
}

func TestTerminal_CtrlCStopsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		before string // what is on the screen when the key is pressed
		after  string
	}{
		"a command":  {[]string{"--allow", "shellExecute"}, `(?m)^  Bash +tail -f /dev/null`, "stopping Bash: tail -f /dev/null"},
		"a question": {nil, `Bash wants to run: tail -f /dev/null +\[y\]`, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, bashCall("tail -f /dev/null"), script.Text("It ended.").Always())
			p := newProgram(t, model.URL())
			screen := p.startOnTerminal(t, append(append([]string{"run"}, c.args...), "Wait.")...)
			screen.Wait(c.before)
			screen.Keys("C-c")
			text := strings.Join(screen.Over(exitInterrupted), "\n")
			for _, words := range []string{c.after, "interrupted", "drover: stopped; the CLI and all it started are gone"} {
				if !strings.Contains(text, words) {
					t.Errorf("%q is not on the screen:\n%s", words, text)
				}
			}
			p.checkNothingLeft()
		})
	}
}

// The demo is the whole way: the real CLI, its events, the view.
func TestTerminal_ShowsTheDemo(t *testing.T) {
	cli := claudetest.CLI(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := testkit.OpenPane(t, 80, 60, self+" demo", asCommand+"=1", "DROVER_CLAUDE="+cli.Path, envDemo+"=script", "TMPDIR="+t.TempDir())
	p.Wait(`it stays until you press Enter`)
	p.Keys("Enter")
	screen := strings.Join(p.Over(0), "\n")
	for _, want := range []string{"set-up    claude " + claude.PinnedVersion, "count_lines", "denied", "  done         success", "\n\nReview\n", "\nCost     $", "\nRecord   /", "exit code 0"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not there:\n%s", want, screen)
		}
	}
	if status := testkit.StatusLine.FindString(screen); status != "" && !strings.HasPrefix(status, "  0") {
		t.Errorf("a status line is left: %q", status)
	}
}
