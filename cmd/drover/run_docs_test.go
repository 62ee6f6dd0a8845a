// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The commands of the pages that need no key do what the page says, word for word.
func TestDocs_CommandsOfPagesWork(t *testing.T) {
	commands := append(pageCommands(t, "../../README.md"), pageCommands(t, "../../docs/run.md")...)
	if len(commands) < 6 {
		t.Fatalf("only %d commands found", len(commands))
	}
	p := newProgram(t, unusedEndpoint(t))
	if err := os.CopyFS(filepath.Join(p.cli.Work, "examples/run"), os.DirFS("../../examples/run")); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(p.cli.Root, "bin")
	linkAsDrover(t, bin)
	p.setEnv(map[string]string{"PATH": bin + ":" + p.env["PATH"]})
	for _, c := range commands {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.line)
		cmd.Dir = filepath.Join(p.cli.Work, "examples/run")
		for name, value := range p.env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.code {
			t.Errorf("%s\nexit code %d, want %d:\n%s", c.line, got, c.code, out)
		}
		p.checkNothingLeft()
	}
}

type pageCommand struct {
	line string
	code int
}

var exitComment = regexp.MustCompile(`# exit code (\d+)`)

// pageCommands are the commands in blocks of the page that have a scripted model.
func pageCommands(t *testing.T, path string) []pageCommand {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []pageCommand
	for i, block := range strings.Split(string(page), "```") {
		if i%2 == 0 || !strings.HasPrefix(block, "sh\n") {
			continue
		}
		for line := range strings.Lines(block) {
			if !strings.Contains(line, "--model-script") && !strings.Contains(line, "--replay") {
				continue
			}
			c := pageCommand{line: strings.TrimSpace(line)}
			if code := exitComment.FindStringSubmatch(line); code != nil {
				c.code, _ = strconv.Atoi(code[1])
			}
			found = append(found, c)
		}
	}
	return found
}

// linkAsDrover makes this test program the command drover of a folder.
func linkAsDrover(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "drover"))
	}
	if err != nil {
		t.Fatal(err)
	}
}
