// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/workspace"
)

func TestExec_RunsInTheWorkingDirectoryOfTheAgent(t *testing.T) {
	w, err := workspace.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if err := os.MkdirAll(filepath.Join(w.Root(), "part"), 0o755); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	cases := []struct {
		name string
		base *claude.Options
		req  agent.Request
		want string // the working directory; empty if it is refused
	}{
		{"in its workspace", nil, agent.Request{Settings: agent.Settings{Workspace: w}}, w.Root()},
		{"in a folder of its workspace", nil, agent.Request{Settings: agent.Settings{Workspace: w, Dir: "part"}}, filepath.Join(w.Root(), "part")},
		{"in its folder", &claude.Options{Dir: w.Root()}, agent.Request{Settings: agent.Settings{Dir: other}}, other},
		{"in the folder of the adapter", &claude.Options{Dir: other}, agent.Request{}, other},
		{"not outside of its workspace", nil, agent.Request{Settings: agent.Settings{Workspace: w, Dir: ".."}}, ""},
		{"not in an isolation of unknown strength", &claude.Options{Dir: other, Spawner: &claude.HostSpawner{}}, agent.Request{}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			done, err := claudecode.New(c.base).Exec(t.Context(), c.req, []string{"sh", "-c", "pwd -P; id -u; echo x > seen"})
			if c.want == "" {
				if err == nil || !strings.Contains(advice.Text(err), "next:") {
					t.Errorf("got %v, want a refusal", err)
				}
				return
			}
			real, _ := filepath.EvalSymlinks(c.want)
			dir, id, _ := strings.Cut(string(done.Output), "\n")
			if err != nil || done.ExitCode != 0 || dir != real || id == "0\n" {
				t.Errorf("got %+v %q, %v, want %s", done, done.Output, err, real)
			}
			if _, err := os.Stat(filepath.Join(c.want, "seen")); err != nil {
				t.Errorf("what it wrote is not there for the agent: %v", err)
			}
		})
	}
}

func TestExec_HasTheIsolationOfTheAdapter(t *testing.T) {
	dir := t.TempDir()
	in := &isolation.Isolation{Env: map[string]string{"OF_THE_ISOLATION": "yes"}}
	done, err := claudecode.New(&claude.Options{Dir: dir}).In(in).Exec(t.Context(), agent.Request{}, []string{"env"})
	if err != nil || !strings.Contains(string(done.Output), "OF_THE_ISOLATION=yes") {
		t.Errorf("got %q, %v", done.Output, err)
	}
	in.Strongest, in.Weakest = isolation.LevelSandbox, isolation.LevelSandbox
	if done, err := claudecode.New(&claude.Options{Dir: dir}).In(in).Exec(t.Context(), agent.Request{}, []string{"env"}); err == nil {
		t.Errorf("a command ran without isolation: %q", done.Output)
	}
}
