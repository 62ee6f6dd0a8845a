// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

func TestCLAUDE001_TheAdapterIsClaudeCode(t *testing.T) {
	var a agent.Adapter = claudecode.New(nil)
	if got := a.Agent(); got != "claude-code" {
		t.Errorf("Agent() is %q, want claude-code", got)
	}
}

func TestCLAUDE002_WithoutACLIItCanBeRegisteredButNotRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "claude")
	a := claudecode.New(&claude.Options{CLIPath: path})
	registry, err := agent.NewRegistry(a)
	if err != nil {
		t.Fatalf("registering without a CLI: %v", err)
	}
	if found, err := registry.Lookup("claude-code"); err != nil || found != a {
		t.Fatalf("Lookup gives %v, %v", found, err)
	}
	ready := a.Ready(t.Context())
	if ready.Available() || ready.State != agent.StateMissing || !strings.Contains(ready.Detail, path) || !strings.HasPrefix(ready.Repair, "npm install") {
		t.Errorf("readiness is %+v, want missing with the path and the way to fix it", ready)
	}
	err = refused(t, a, agent.Request{Prompt: "go"})
	if !errors.Is(err, agent.ErrUnavailable) || !errors.Is(err, claude.ErrCLINotFound) || !strings.Contains(advice.Text(err), "next: npm install") {
		t.Errorf("Run gives %v, want ErrUnavailable and ErrCLINotFound", err)
	}
}

// A run with everything in it: thinking, text, deltas, two tools at once, the answer.
func TestCLAUDE003_TheStreamOfARealRun(t *testing.T) {
	for name, cli := range eachCLI {
		t.Run(name, func(t *testing.T) {
			cli := cli(t)
			cli.WriteFile(t, "in.txt", "the content")
			model := claudetest.NewModel(t,
				script.Reply(script.ThinkingBlock{Thinking: "Hm."}, script.TextBlock{Text: "I look."},
					script.ToolCall{Name: "Read", Input: script.Input{"file_path": filepath.Join(cli.Work, "in.txt")}}, bash("cat missing.txt")),
				script.Text("It says: the content.").Chunked(4, 0)).RequireAllUsed()
			base := cli.Options(model)
			base.PermissionMode = claude.ModeBypassPermissions
			base.Thinking = &claude.Thinking{BudgetTokens: 2000}
			got := run(t, base, agent.Request{Prompt: "What does in.txt say?", Settings: agent.Settings{PartialText: true}})
			got.check(t)
			init := got.init(t)
			if init.Model == "" || init.Dir != cli.Work || !slices.Contains(init.Tools, "Bash") {
				t.Errorf("init is %+v", init)
			}
			if got.result("Read") != event.ToolSuccess || got.result("Bash") != event.ToolError {
				t.Errorf("Read ended with %q, Bash with %q", got.result("Read"), got.result("Bash"))
			}
			var deltas strings.Builder
			for _, d := range of[event.TextDelta](got) {
				deltas.WriteString(d.Delta)
			}
			if deltas.String() != "I look.It says: the content." {
				t.Errorf("the deltas make %q", deltas.String())
			}
			if texts := of[event.Text](got); len(texts) != 2 || texts[0].Content != "I look." || texts[1].Content != "It says: the content." {
				t.Errorf("texts are %+v", texts)
			}
			if thoughts := of[event.Thinking](got); len(thoughts) != 1 || thoughts[0].Summary != "Hm." {
				t.Errorf("thoughts are %+v", thoughts)
			}
			done := got.done(t)
			if done.Status != event.DoneSuccess || done.Result != "It says: the content." || done.Usage.ToolUses != 2 || done.Usage.InputTokens() == 0 || done.Duration == 0 {
				t.Errorf("done is %+v", done)
			}
		})
	}
}

// eachCLI are the CLIs that the main path must work with.
var eachCLI = map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI}

// levels are file, shell and network: "a" allow, "s" ask, "d" deny, "-" unset.
func levels(word string) *gate.Permissions {
	level := map[byte]gate.Level{'a': gate.LevelAllow, 's': gate.LevelAsk, 'd': gate.LevelDeny, '-': gate.LevelUnset}
	return &gate.Permissions{FileWrite: level[word[0]], ShellExecute: level[word[1]], NetworkAccess: level[word[2]]}
}

// What the real CLI does with the tools of each capability: "ran", "denied", or "asked" and then denied
// because no approver is there to answer.
func TestCLAUDE004_PermissionsAreModesOfTheRealCLI(t *testing.T) {
	for name, x := range map[string]struct {
		permissions              *gate.Permissions
		mode, write, bash, fetch string
	}{
		"all allowed":       {levels("aaa"), "bypassPermissions", "ran", "ran", ""},
		"bypass":            {&gate.Permissions{Mode: gate.ModeBypass}, "bypassPermissions", "ran", "ran", ""},
		"left to the agent": {&gate.Permissions{Mode: gate.ModeAuto}, "auto", "ran", "ran", ""},
		"files allowed":     {levels("ass"), "acceptEdits", "ran", "asked", "asked"},
		"nothing set":       {levels("---"), "default", "asked", "asked", "asked"},
		"shell asked":       {levels("asd"), "default", "ran", "asked", "denied"},
		"files denied":      {levels("das"), "default", "denied", "ran", "asked"},
		"shell denied":      {levels("ada"), "default", "ran", "denied", ""},
		"everything denied": {levels("ddd"), "default", "denied", "denied", "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			calls := []script.Block{write(cli, "out.txt"), bash("touch ran.txt")}
			if x.fetch != "" { // an allowed one would leave the machine
				calls = append(calls, fetch())
			}
			model := claudetest.NewModel(t, script.Reply(calls...), script.Text("Done.")).RequireAllUsed()
			got := run(t, cli.Options(model), agent.Request{Prompt: "go", Settings: agent.Settings{Permissions: x.permissions}})
			got.check(t)
			if mode := got.mode(t); mode != x.mode {
				t.Errorf("the CLI is in mode %q, want %q", mode, x.mode)
			}
			for tool, want := range map[string]string{"Write": x.write, "Bash": x.bash, "WebFetch": x.fetch} {
				if have := got.outcome(tool); have != want {
					t.Errorf("%s: %s, want %s", tool, have, want)
				}
			}
			for file, ran := range map[string]bool{"out.txt": x.write == "ran", "ran.txt": x.bash == "ran"} {
				if _, err := os.Stat(filepath.Join(cli.Work, file)); (err == nil) != ran {
					t.Errorf("%s is there: %t, want %t", file, err == nil, ran)
				}
			}
		})
	}
}

// outcome is what became of the call of a tool, in one word.
func (r recording) outcome(tool string) string {
	status := r.result(tool)
	switch {
	case status == event.ToolSuccess && !r.asked(tool):
		return "ran"
	case status == event.ToolDenied && r.asked(tool):
		return "asked"
	case status == "":
		return ""
	}
	return string(status)
}

// An approver that allows the calls: the question is in the stream between the call and its result.
func TestCLAUDE004_ApproverAnswersTheQuestion(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(write(cli, "out.txt"), bash("touch ran.txt")), script.Text("Done.")).RequireAllUsed()
	runner := newRunner(t, cli.Options(model), &agent.RunnerOptions{Approver: gate.ApproverFunc(func(_ context.Context, q gate.Question) (gate.Answer, error) {
		if q.Call.Name == "Write" {
			return gate.Answer{Verdict: event.Allow}, nil
		}
		return gate.Answer{}, nil
	})})
	got := record(t, runner.Run(inTime(t), agent.Request{Prompt: "go", Settings: agent.Settings{Permissions: &gate.Permissions{}}}))
	got.check(t)
	var about []string
	for _, e := range got {
		if call := of[event.ToolCall](got)[0]; e.CallID() == call.ID {
			about = append(about, string(e.Kind))
		}
	}
	if diff := cmp.Diff([]string{"tool_use", "permission_request", "gate:decision", "tool_result"}, about); diff != "" {
		t.Errorf("events about the first call (-want +got):\n%s", diff)
	}
	if got.result("Write") != event.ToolSuccess || got.result("Bash") != event.ToolDenied {
		t.Errorf("Write ended with %q, Bash with %q", got.result("Write"), got.result("Bash"))
	}
}

// Write and Edit are fileWrite, Bash is shellExecute, WebFetch is networkAccess; what needs no
// capability runs.
func TestCLAUDE005_ToolsBelongToCapabilities(t *testing.T) {
	for denied, want := range map[string]map[string]event.ToolStatus{
		"daa": {"Read": event.ToolSuccess, "Write": event.ToolDenied, "Edit": event.ToolDenied, "Bash": event.ToolSuccess},
		"aad": {"Read": event.ToolSuccess, "Write": event.ToolSuccess, "Edit": event.ToolSuccess, "Bash": event.ToolSuccess, "WebFetch": event.ToolDenied},
	} {
		t.Run(denied, func(t *testing.T) {
			cli := claudetest.CLI(t)
			path := cli.WriteFile(t, "in.txt", "old")
			calls := []script.Block{
				write(cli, "out.txt"), bash("true"),
				script.ToolCall{Name: "Edit", Input: script.Input{"file_path": path, "old_string": "old", "new_string": "new"}},
			}
			if want["WebFetch"] != "" {
				calls = append(calls, fetch())
			}
			model := claudetest.NewModel(t, script.Call("Read", script.Input{"file_path": path}), script.Reply(calls...), script.Text("Done.")).RequireAllUsed()
			got := run(t, cli.Options(model), agent.Request{Prompt: "go", Settings: agent.Settings{Permissions: levels(denied)}})
			got.check(t)
			have := map[string]event.ToolStatus{}
			for _, r := range of[event.ToolResult](got) {
				have[r.Name] = r.Status
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			reason := "which the permission policy denies"
			if !model.LastRequest().SawText(reason) {
				t.Errorf("the model did not receive %q", reason)
			}
		})
	}
}
