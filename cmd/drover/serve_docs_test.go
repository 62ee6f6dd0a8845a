// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/script"
)

// The example of docs/server.md does what the page says, word for word.
func TestDocs_ServerExampleWorks(t *testing.T) {
	for _, program := range []string{"curl", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the example needs %s: apt-get install %s", program, program)
		}
	}
	page, err := os.ReadFile("../../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```sh\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	s := newService(t, script.Text("Nothing is here.").Times(script.Forever))
	bin := filepath.Join(s.cli.Root, "bin")
	linkAsDrover(t, bin)
	s.setEnv(map[string]string{"PATH": bin + ":" + s.env["PATH"]})
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", example+"\nwait $server\n")
	cmd.Dir = s.cli.Work
	for name, value := range s.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, want := range []string{"event: entry", "event: end", "\nNothing is here.\n", "GET /v1/runs lists them"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%.3000s", want, out)
		}
	}
	s.checkNothingLeft()
}
