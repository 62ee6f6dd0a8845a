// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/session"
)

func TestFile_OptionsHaveTheValuesOfTheFile(t *testing.T) {
	f, err := Load("testdata/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := f.Options()
	if o.Model != "opus" || o.Effort != "high" || o.AppendSystemPrompt != "Be brief." || o.SystemPrompt != "" {
		t.Errorf("model %q, effort %q, system prompt %q and %q", o.Model, o.Effort, o.AppendSystemPrompt, o.SystemPrompt)
	}
	if o.MaxTurns != 10 || o.Budget.MaxCostUSD != 0.5 || o.Budget.MaxTotalTokens != 10_000 || o.ToolTimeout != 10*time.Second || o.MaxRounds != 3 {
		t.Errorf("limits %+v", o)
	}
	if left := o.Deadline.Remaining(); left > 5*time.Minute || left < 4*time.Minute {
		t.Errorf("%v are left, want nearly 5m", left)
	}
	if diff := cmp.Diff([]string{"Read", "Grep", "Bash(git log *)", "mcp__lint", "mcp__web__find", "mcp__drover", "Skill"}, o.Tools); diff != "" {
		t.Errorf("the tools (-want +got):\n%s", diff)
	}
	if want := (gate.Permissions{Mode: gate.ModeAllow, FileWrite: gate.LevelDeny, ShellExecute: gate.LevelAsk}); o.Permissions.Mode != want.Mode || o.Permissions.FileWrite != want.FileWrite || o.Permissions.ShellExecute != want.ShellExecute || o.Permissions.NetworkAccess != want.NetworkAccess {
		t.Errorf("permissions %+v, want %+v", o.Permissions, want)
	}
	var names []string
	for _, p := range o.Policies {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"rules", "read-before-write", "require-before"}, names); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if _, err := gate.New(append(o.Policies, gate.KnowsAgent(catalogue.Tools()))...); err != nil {
		t.Error(err)
	}
	if _, err := guard.NewFeedback(session.New(nil), &guard.FeedbackOptions{Files: guard.Dir(".")}, o.Feedback...); err != nil || len(o.Feedback) != 3 {
		t.Errorf("%d rules of feedback, %v", len(o.Feedback), err)
	}
	if o.Completion == nil {
		t.Error("nothing says when the task is done")
	}
}

// A file that says nothing leaves everything as it is.
func TestFile_OptionsOfAMinimalFileAreEmpty(t *testing.T) {
	o := mustParse(t, minimal).Options()
	if o.Tools != nil || o.Budget != nil || !o.Deadline.IsZero() || o.Completion != nil || o.Policies != nil || o.Feedback != nil {
		t.Errorf("options %+v, want none", o)
	}
	if o := mustParse(t, minimal+"tools: {allow: []}\n").Options(); o.Tools == nil {
		t.Error("a list without tools is taken for no list")
	}
}

func TestFile_OptionsHaveMountsServersAndIsolation(t *testing.T) {
	f, err := Load("testdata/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]agent.Server{
		"lint": {Command: []string{"lint-server", "--stdio"}, Env: map[string]string{"A": "b"}, Timeout: 5 * time.Second},
		"web":  {URL: "https://tools.example.com/mcp", Headers: map[string]string{"X-Team": "blue"}},
	}, f.Options().Servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	options := f.IsolationOptions()
	if options.Weakest != isolation.LevelCell || !options.Network.AllowLocalhost || len(options.Network.AllowedDomains) != 2 {
		t.Errorf("isolation %+v %+v", options, options.Network)
	}
	w, err := f.Workspace()
	if err != nil {
		t.Fatal(err)
	}
	here, _ := filepath.Abs("testdata/src")
	if m := w.Mounts[0]; m.HostPath != here || m.MountPath != "project/src" || *m.MaxBytes != 10_000_000 || w.AllowAnyRoot {
		t.Errorf("mount %+v", m)
	}
	if diff := cmp.Diff([]string{"notes", "notes/**"}, f.WriteBack()); diff != "" {
		t.Errorf("what is written back (-want +got):\n%s", diff)
	}
	if w, err := mustParse(t, minimal).Workspace(); w != nil || err != nil {
		t.Errorf("a file without mounts has the workspace %v, %v", w, err)
	}
}

func TestParse_SizesHaveUnits(t *testing.T) {
	for text, want := range map[string]Bytes{`800`: 800, `"64KB"`: 64_000, `"1.5 MB"`: 1_500_000, `"2GiB"`: 2 << 30, `"7B"`: 7, `"12"`: 12} {
		var got Bytes
		if err := got.UnmarshalJSON([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{`"9999999999GB"`, `"x"`, `-1`, `"KB"`} {
		if err := new(Bytes).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s is taken for a size", text)
		}
	}
}
