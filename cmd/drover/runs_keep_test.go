// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// The limits of DROVER_KEEP hold for runs of the real agent, once the last removal is ten minutes ago. Those that are left are compared.
func TestRuns_RetentionAndCompare(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	old := keptRun(t, "old", "Look.", agenttest.Done(""))
	list := script.Call("Bash", script.Input{"command": "echo one", "description": "list"})
	model := claudetest.NewModel(t, list, script.Text("It is one."), list, script.Call("Bash", script.Input{"command": "echo two", "description": "list"}), script.Text("It is two."), script.Text("It is three."))
	p := newProgram(t, model.URL())
	p.setEnv(map[string]string{"XDG_STATE_HOME": state, envKeep: "runs=2"})
	ids := func() []string {
		return strings.Fields(mustCommand(t, 0, "runs", "sql", "select id from runs order by began"))[1:]
	}
	if r := p.run("run", "--quiet", "--allow", "shellExecute", "Count."); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	first := ids()
	if len(first) != 2 || first[0] != old {
		t.Fatalf("the runs are %v, want %s and another one", first, old)
	}
	pruned := filepath.Join(state, "drover", "runs", "pruned")
	ago := time.Now().Add(-11 * time.Minute)
	if err := os.Chtimes(pruned, ago, ago); err != nil {
		t.Fatal(err)
	}
	if r := p.run("run", "--quiet", "--allow", "shellExecute", "Count."); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	both := ids()
	if len(both) != 2 || both[0] != first[1] {
		t.Fatalf("the runs are %v, want %s and the last one", both, first[1])
	}
	got := mustCommand(t, 0, "runs", "compare", both[0][:8], "last")
	for _, want := range []string{
		"The prompt: the same\n", "The tools: the same\n", "The calls: different after 1 call\n  A: no more calls\n  B: Bash  echo two  success\n", "-It is one.\n", "+It is two.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("compare lacks %q:\n%s", want, got)
		}
	}
	p.setEnv(map[string]string{envKeep: "runs=none"})
	if r := p.run("run", "--quiet", "Count."); r.code != exitUsage || !strings.Contains(r.errors, envKeep+": runs=none: ") {
		t.Errorf("%+v", r)
	}
	p.setEnv(map[string]string{envKeep: "no"})
	if r := p.run("run", "--quiet", "Count."); r.code != 0 || r.out != "It is three.\n" || r.errors != "" || !slices.Equal(ids(), both) {
		t.Errorf("with %s=no the runs are %v: %+v", envKeep, ids(), r)
	}
}
