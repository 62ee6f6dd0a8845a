// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The examples of docs/fleet.md do what the page says, word for word.
func TestDocs_FleetExamplesWork(t *testing.T) {
	page, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples []string
	for i, block := range strings.Split(string(page), "```") {
		if text, is := strings.CutPrefix(block, "sh\n"); is && i%2 == 1 {
			examples = append(examples, text)
		}
	}
	if len(examples) != 2 {
		t.Fatalf("the page has %d examples", len(examples))
	}
	nats := aCluster(t)
	model := newFleetModel(t)
	defer model.stop()
	for i, wants := range [][]string{{"\nFine.\n"}, {"\nFine.\n", "succeeded"}} {
		p := newProgram(t, model.URL())
		p.leaves = true // the files of the example
		bin := filepath.Join(p.cli.Root, "bin")
		linkAsDrover(t, bin)
		p.setEnv(map[string]string{"PATH": bin + ":" + p.env["PATH"], "NATS": nats, asCommand: "all"})
		if err := os.WriteFile(filepath.Join(p.cli.Work, "reviewer.yaml"), []byte(reviewerFile), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", examples[i])
		cmd.Dir = p.cli.Work
		for name, value := range p.env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		for _, want := range wants {
			if !strings.Contains(string(out), want) {
				t.Errorf("the output lacks %q:\n%s", want, out)
			}
		}
		p.checkNothingLeft()
	}
}
