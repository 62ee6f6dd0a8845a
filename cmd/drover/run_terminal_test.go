// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// startOnTerminal runs the command in a real terminal.
func (p *program) startOnTerminal(t *testing.T, args ...string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt-get install tmux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pane") // short, since the path of a socket must be
	if err != nil {
		t.Fatal(err)
	}
	screen := &pane{t: t, socket: filepath.Join(dir, "tmux"), dir: dir}
	t.Cleanup(screen.close)
	var b strings.Builder
	fmt.Fprintf(&b, "trap : INT\n(cd %s && env -i TERM=xterm-256color", p.cli.Work)
	for name, value := range p.env {
		fmt.Fprintf(&b, " '%s=%s'", name, value)
	}
	fmt.Fprintf(&b, " %s '%s')\necho \"exit code $?\"\nstty -a | tr ' ;' '\\n\\n' | grep -x -e '-*echo' -e '-*icanon' -e '-*isig' | tr '\\n' ' '\necho over\nexec sleep 1000\n", self, strings.Join(args, "' '"))
	writeFile(t, filepath.Join(dir, "script"), []byte(b.String()))
	screen.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", "sh "+filepath.Join(dir, "script"))
	return screen
}

func bashCall(command string) script.Turn {
	return script.Call("Bash", script.Input{"command": command, "description": "do it"})
}

func TestOnATerminalAPersonDecides(t *testing.T) {
	model := claudetest.NewModel(t, bashCall("touch one.txt"), bashCall("touch two.txt"), script.Text("One of two."))
	p := newProgram(t, model.URL())
	screen := p.startOnTerminal(t, "run", "Do it.")
	screen.wait(`Bash wants to run: touch one.txt +\[y\]`)
	screen.keys("y")
	screen.wait(`Bash wants to run: touch two.txt +\[y\]`)
	screen.keys("n")
	text := strings.Join(screen.over(exitDenied), "\n")
	if !strings.Contains(text, "One of two.") || !strings.Contains(text, "drover: the agent came to its end, but 1 tool call was denied: Bash (1)") {
		t.Errorf("want the answer, and what was denied:\n%s", text)
	}
	checkFiles(t, p.cli.Work, "one.txt")
	p.checkNothingLeft()
}

func TestCtrlCOnATerminal(t *testing.T) {
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
			screen.wait(c.before)
			screen.keys("C-c")
			text := strings.Join(screen.over(exitInterrupted), "\n")
			for _, words := range []string{c.after, "interrupted", "drover: stopped; the CLI and all it started are gone"} {
				if !strings.Contains(text, words) {
					t.Errorf("%q is not on the screen:\n%s", words, text)
				}
			}
			p.checkNothingLeft()
		})
	}
}
