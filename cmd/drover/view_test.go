// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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

// A pane is a real terminal: tmux on a socket of its own.
type pane struct {
	t      *testing.T
	socket string
	dir    string
}

const patience = 20 * time.Second

// newPane starts a terminal in which this test binary plays one of the plays.
func newPane(t *testing.T, columns, rows int, play string, env ...string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt-get install tmux")
	}
	dir, err := os.MkdirTemp("", "pane") // short, since the path of a socket must be
	if err != nil {
		t.Fatal(err)
	}
	p := &pane{t: t, socket: filepath.Join(dir, "tmux"), dir: dir}
	t.Cleanup(p.close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := self
	if play == "background" {
		command = "set -m\n" + self + " &\nwait $!"
	}
	script := fmt.Sprintf("trap : INT\n%s\necho \"exit code $?\"\nstty -a | tr ' ;' '\\n\\n' | grep -x -e '-*echo' -e '-*icanon' -e '-*isig' | tr '\\n' ' '\necho over\nexec sleep 1000\n", command)
	writeFile(t, filepath.Join(dir, "script"), []byte(script))
	args := []string{"-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows)}
	for _, variable := range append(env, playVariable+"="+play, playDirVariable+"="+dir) {
		args = append(args, "-e", variable)
	}
	p.tmux(append(args, "sh "+filepath.Join(dir, "script"))...)
	return p
}

func (p *pane) close() {
	_ = exec.Command("tmux", "-S", p.socket, "kill-server").Run()
	if p.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
		p.t.Logf("the play says:\n%s", log)
	}
	_ = os.RemoveAll(p.dir)
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", p.socket}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/sh", "HOME=" + p.dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// screen is what a person sees, without the empty rows at the end.
func (p *pane) screen() []string {
	return strings.Split(strings.TrimRight(p.tmux("capture-pane", "-p"), "\n"), "\n")
}

// wait waits until the screen matches a pattern, and returns it.
func (p *pane) wait(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	var screen []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		screen = p.screen()
		if re.MatchString(strings.Join(screen, "\n")) {
			return screen
		}
	}
	p.t.Fatalf("%q did not come within %s; the screen:\n%s", pattern, patience, strings.Join(screen, "\n"))
	return nil
}

func (p *pane) keys(keys ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys"}, keys...)...)
}

// step lets the play go on after a "wait" of its own.
func (p *pane) step(name string) {
	p.t.Helper()
	writeFile(p.t, filepath.Join(p.dir, name), nil)
}

// log waits for a line that the play has written down.
func (p *pane) log(want string) {
	p.t.Helper()
	var got []byte
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		got, _ = os.ReadFile(filepath.Join(p.dir, "log"))
		if bytes.Contains(got, []byte(want+"\n")) {
			return
		}
	}
	p.t.Fatalf("the play did not say %q but\n%s", want, got)
}

// over waits for the end of the play and checks that the terminal is as it was.
func (p *pane) over(code int) []string {
	p.t.Helper()
	screen := p.wait(`over$`)
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

// checkWhole fails if a line on the screen is the rest of the one above: nothing may be wrapped.
func (p *pane) checkWhole() {
	p.t.Helper()
	screen, joined := p.tmux("capture-pane", "-p"), p.tmux("capture-pane", "-p", "-J")
	if a, b := strings.Count(screen, "\n"), strings.Count(joined, "\n"); a != b {
		p.t.Errorf("%d of %d lines are wrapped:\n%s", a-b, a, screen)
	}
}

var statusLine = regexp.MustCompile(`(?m)^  (stopping )?[\w:]+ .* \d+ s(  .*)?$|^  .* wants to .*\[.*\?\].*$`)

// checkStatus fails unless the last line, and no other, is the status line.
func checkStatus(t *testing.T, screen []string) {
	t.Helper()
	var at []int
	for i, line := range screen {
		if statusLine.MatchString(line) && !regexp.MustCompile(`^  \d`).MatchString(line) {
			at = append(at, i)
		}
	}
	if len(at) != 1 || at[0] != len(screen)-1 {
		t.Errorf("status lines at %v, want one at %d:\n%s", at, len(screen)-1, strings.Join(screen, "\n"))
	}
}
