// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Pane is a terminal in which a command runs.
type Pane struct {
	t      *testing.T
	socket string
	dir    string
}

// Patience is how long a test waits for what must come.
const Patience = 20 * time.Second

// OpenPane runs a command of the shell in a terminal, with variables of the environment. The screen shows how it ended,
// and stays until the test is over. Without tmux the test is skipped.
func OpenPane(t *testing.T, columns, rows int, command string, env ...string) *Pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt-get install tmux")
	}
	dir, err := os.MkdirTemp("", "pane") // short, since the path of a socket must be
	if err != nil {
		t.Fatal(err)
	}
	p := &Pane{t: t, socket: filepath.Join(dir, "tmux"), dir: dir}
	t.Cleanup(p.close)
	path := filepath.Join(dir, "script")
	script := fmt.Sprintf("trap : INT\n%s\necho \"exit code $?\"\nstty -a | tr ' ;' '\\n\\n' | grep -x -e '-*echo' -e '-*icanon' -e '-*isig' | tr '\\n' ' '\necho over\nexec sleep 1000\n", command)
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows)}
	for _, variable := range env {
		args = append(args, "-e", variable)
	}
	p.Tmux(append(args, "sh "+path)...)
	return p
}

func (p *Pane) close() {
	_ = exec.Command("tmux", "-S", p.socket, "kill-server").Run()
	_ = os.RemoveAll(p.dir)
}

// Tmux runs a command of tmux on the terminal, and returns what it prints.
func (p *Pane) Tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", p.socket}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/sh", "HOME=" + p.dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Screen returns the visible text, without the empty rows at the end.
func (p *Pane) Screen() []string {
	return strings.Split(strings.TrimRight(p.Tmux("capture-pane", "-p"), "\n"), "\n")
}

// Wait waits until the screen matches a pattern, and returns it.
func (p *Pane) Wait(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	var screen []string
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		screen = p.Screen()
		if re.MatchString(strings.Join(screen, "\n")) {
			return screen
		}
	}
	p.t.Fatalf("%q did not come within %s; the screen:\n%s", pattern, Patience, strings.Join(screen, "\n"))
	return nil
}

// Keys types keys, by the names that tmux has for them.
func (p *Pane) Keys(keys ...string) {
	p.t.Helper()
	p.Tmux(append([]string{"send-keys"}, keys...)...)
}

// Over waits for the end of the command and checks that the terminal is as it was.
func (p *Pane) Over(code int) []string {
	p.t.Helper()
	screen := p.Wait(`over$`)
	text := strings.Join(screen, "\n")
	if want := fmt.Sprintf("exit code %d", code); !strings.Contains(text, want) {
		p.t.Errorf("%q is not there:\n%s", want, text)
	}
	for _, flag := range []string{"echo", "icanon", "isig"} {
		if !regexp.MustCompile(`(^|[ \n])` + flag + ` `).MatchString(text) {
			p.t.Errorf("%s is off after the run:\n%s", flag, text)
		}
	}
	return screen
}

// StatusLine matches a line of the screen that shows the activity, or asks a question.
var StatusLine = regexp.MustCompile(`(?m)^  (stopping )?[\w:]+ .* \d+ s(  .*)?$|^  .* wants to .*\[.*\?\].*$`)
