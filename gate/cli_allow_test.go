// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// The CLI refuses bypassPermissions to root, unless its environment states that it runs in a sandbox. In its default
// mode the hook alone lets everything run; about some files and commands the CLI asks in spite of it,
// and the gate answers.
func TestCLI_HookAllowsEverythingInTheDefaultMode(t *testing.T) {
	cli := claudetest.CLI(t)
	edited := cli.WriteFile(t, "edited.txt", "one\n")
	calls := []struct {
		id, tool string
		input    script.Input
		want     string // what the model reads
	}{
		{"write", "Write", script.Input{"file_path": filepath.Join(cli.Work, "new.txt"), "content": "x"}, "created"},
		{"write-far", "Write", script.Input{"file_path": filepath.Join(cli.Root, "far.txt"), "content": "x"}, "created"},
		{"write-git", "Write", script.Input{"file_path": filepath.Join(cli.Work, ".git/hooks/x"), "content": "x"}, "created"},
		{"write-rc", "Write", script.Input{"file_path": filepath.Join(cli.Home, ".bashrc"), "content": "x"}, "created"},
		{"read", "Read", script.Input{"file_path": edited}, "one"},
		{"edit", "Edit", script.Input{"file_path": edited, "old_string": "one", "new_string": "two"}, "updated"},
		{"bash", "Bash", script.Input{"command": "cd .. && touch made.txt && echo made"}, "made"},
		{"bash-rm", "Bash", script.Input{"command": "rm -rf " + filepath.Join(cli.Work, ".git/hooks") + "; echo gone"}, "gone"},
		{"fetch", "WebFetch", script.Input{"url": "http://127.0.0.1:1/", "prompt": "What is there?"}, "ECONNREFUSED"}, // it tried
	}
	want := map[string][]string{}
	var turns []script.Turn
	for _, c := range calls {
		turns = append(turns, script.Reply(script.ToolCall{ID: c.id, Name: c.tool, Input: c.input}))
		want[c.id] = []string{"gate:decision allow by capabilities"}
	}
	want["read"] = []string{"gate:decision allow by otherwise"}
	model := claudetest.NewModel(t, append(turns, script.Text("Done."))...)
	var emitted diary
	const allow = gate.LevelAllow
	e := gate.NewEngine(gate.ForClaude(gate.FromCapabilities(&gate.Permissions{FileWrite: allow, ShellExecute: allow, NetworkAccess: allow})), &gate.EngineOptions{Emit: emitted.emit})
	opts := cli.Options(model)
	cli.SetEnv(opts, model, map[string]string{"IS_SANDBOX": ""})
	opts.Settings = json.RawMessage(`{"skipWebFetchPreflight":true}`)
	opts.PermissionMode = claude.ModeDefault
	bind(t, e, opts)
	if opts.PermissionMode != claude.ModeDefault {
		t.Errorf("Bind made the mode %s", opts.PermissionMode)
	}
	turn(t, claudetest.Connect(t, opts), "go")
	for _, c := range calls {
		if text, _, _ := model.ToolResult(c.id); !strings.Contains(text, c.want) {
			t.Errorf("%s: the model read %q, want %q", c.id, text, c.want)
		}
	}
	if diff := cmp.Diff(want, emitted.entries()); diff != "" {
		t.Errorf("events by call (-want +got):\n%s", diff)
	}
}

// A person has approved the command. That the CLI would rather ask once more is no denial.
func TestCLI_ApprovedCommandRunsInAcceptEdits(t *testing.T) {
	cli := claudetest.CLI(t)
	hooks := filepath.Dir(cli.WriteFile(t, ".git/hooks/x", ""))
	model := claudetest.NewModel(t, script.Reply(bash("toolu_rm", "rm -rf "+hooks)), script.Text("Done."))
	p := answering(gate.Answer{Verdict: event.Allow})
	e := gate.NewEngine(gate.ForClaude(gate.FromCapabilities(&gate.Permissions{FileWrite: gate.LevelAllow})), &gate.EngineOptions{Approver: p})
	opts := cli.Options(model)
	bind(t, e, opts)
	if opts.PermissionMode != claude.ModeAcceptEdits {
		t.Errorf("the mode is %s, so that this test does not show what its name says", opts.PermissionMode)
	}
	turn(t, claudetest.Connect(t, opts), "go")
	if _, err := os.Stat(hooks); err == nil || p.asked.Load() != 1 {
		text, _, _ := model.ToolResult("toolu_rm")
		t.Errorf("asked %d times, and the model read %q; want it asked about once, and done", p.asked.Load(), text)
	}
}
