// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/tool"
)

// desk has two tools, which count their runs.
func desk(t testing.TB, ran *[]string) *tool.Registry {
	t.Helper()
	named := func(name string, risk tool.Risk) *tool.Tool {
		return tool.Must(name, "Does "+name+".", func(context.Context, struct{}) (string, error) {
			*ran = append(*ran, name)
			return name + " ran", nil
		}, risk)
	}
	return tool.MustRegistry(nil, named("look", tool.ReadOnly), named("save", tool.Mutates))
}

// One run with nearly everything that a request can set, seen from the CLI and from the model.
func TestCLAUDE006_TheRealCLITakesTheOptions(t *testing.T) {
	cli := claudetest.CLI(t)
	dir := filepath.Join(cli.Work, "below")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	model := claudetest.NewModel(t, script.Call("mcp__drover__look", nil), script.Structured(script.Input{"answer": "42"}), script.Text("Done.").Always())
	var ran []string
	base := cli.Options(model)
	base.Agents = map[string]claude.AgentDefinition{"helper": {Description: "Helps.", Prompt: "Help."}}
	got := run(t, base, agent.Request{
		Prompt: "go", Settings: agent.Settings{Dir: dir, Model: "claude-sonnet-5", SystemPrompt: "You are brief.", Effort: "ultracode", Tools: []string{"Read", "Agent", "look"}, DisallowedTools: []string{"Read(/etc/**)"}, MaxTurns: 5, Budget: &guard.Budget{MaxCostUSD: 10}},
		Registry:     desk(t, &ran),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`),
	})
	got.check(t)
	init := got.init(t)
	if init.Dir != dir || init.Model != "claude-sonnet-5" {
		t.Errorf("the CLI works in %q with %q", init.Dir, init.Model)
	}
	if diff := cmp.Diff([]string{"Read", "StructuredOutput", "Task", "mcp__drover__look"}, slices.Sorted(slices.Values(init.Tools))); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	request := model.Requests()[0]
	if request.SystemText() == "" || !request.SawText("You are brief.") || !request.SawText("helper") {
		t.Error("the model has not seen the system prompt or the subagent")
	}
	if done := got.done(t); done.Status != event.DoneSuccess || string(done.Output) != `{"answer":"42"}` {
		t.Errorf("done is %+v, want the structured answer", done)
	}
	if got.result("mcp__drover__look") != event.ToolSuccess || len(ran) != 1 {
		t.Errorf("our tool ended with %q and ran %q", got.result("mcp__drover__look"), ran)
	}
}

// With an empty list the model has no tool at all, neither of the CLI nor of servers.
func TestTools_EmptyListLeavesTheModelNone(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("Done."))
	var ran []string
	got := run(t, cli.Options(model), agent.Request{Prompt: "go", Settings: agent.Settings{Tools: []string{}}, Registry: desk(t, &ran)})
	got.check(t)
	if init := got.init(t); len(init.Tools) != 0 || len(model.LastRequest().ToolNames()) != 0 {
		t.Errorf("tools are %q, the model sees %q", init.Tools, model.LastRequest().ToolNames())
	}
}

// A list is a boundary whatever the mode: for commands, and for tools of servers of the base.
func TestTools_AllowedListIsEnforcedInEveryMode(t *testing.T) {
	cli := claudetest.CLI(t)
	calls := script.Reply(bash("touch ran"), bash("git status"),
		script.ToolCall{Name: "mcp__other__look"}, script.ToolCall{Name: "mcp__other__save"}, script.ToolCall{Name: "mcp__third__look"})
	model := claudetest.NewModel(t, calls, script.Text("Done."), calls, script.Text("Done."))
	base := cli.Options(model)
	base.PermissionMode = claude.ModeBypassPermissions
	cli.SetEnv(base, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	var ran []string
	base.MCPServers = map[string]claude.MCPServer{}
	for _, name := range []string{"other", "third"} {
		server, err := claudecode.NewSDKServer(desk(t, &ran), &claudecode.SDKServerOptions{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		base.MCPServers[name] = server.Server()
	}
	for name, x := range map[string]struct {
		bash string
		want []event.ToolStatus
	}{
		"with an argument":    {"Bash(git status)", []event.ToolStatus{event.ToolDenied, event.ToolError, event.ToolSuccess, event.ToolDenied, event.ToolError}},
		"without an argument": {"Bash", []event.ToolStatus{event.ToolSuccess, event.ToolError, event.ToolSuccess, event.ToolDenied, event.ToolError}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, base, agent.Request{Prompt: "go", Settings: agent.Settings{Tools: []string{x.bash, "mcp__other__look"}}})
			got.check(t)
			statuses := map[string]event.ToolStatus{}
			for _, r := range of[event.ToolResult](got) {
				statuses[string(r.ID)] = r.Status
			}
			var in []event.ToolStatus
			for _, id := range slices.Sorted(maps.Keys(statuses)) {
				in = append(in, statuses[id])
			}
			if diff := cmp.Diff(x.want, in); diff != "" {
				t.Errorf("touch, git, other look and save, third (-want +got):\n%s", diff)
			}
			if want := "mcp__other__save is not on the list of allowed tools. Use another tool."; !model.SawText(want) {
				t.Errorf("the model has not read %q", want)
			}
		})
	}
}

// The tools of this program run without a question if no host is there to decide, and else as the host
// decides. They are decided about once, at the hook.
func TestTools_OfTheProgramAreServed(t *testing.T) {
	for name, x := range map[string]struct {
		permissions *gate.Permissions
		allowed     []string
		look, save  event.ToolStatus
	}{
		"without a host":       {nil, nil, event.ToolSuccess, event.ToolSuccess},
		"under permissions":    {levels("ddd"), nil, event.ToolSuccess, event.ToolSuccess}, // they need no capability
		"on a list":            {levels("ddd"), []string{"look", "mcp__drover__save"}, event.ToolSuccess, event.ToolSuccess},
		"one is not on a list": {levels("ddd"), []string{"look"}, event.ToolSuccess, event.ToolError}, // the model does not see it
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t,
				script.Reply(script.ToolCall{Name: "mcp__drover__look"}, script.ToolCall{Name: "mcp__drover__save"}), script.Text("Done.").Always())
			var ran []string
			base := cli.Options(model)
			cli.SetEnv(base, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
			got := run(t, base, agent.Request{Prompt: "go", Settings: agent.Settings{Permissions: x.permissions, Tools: x.allowed}, Registry: desk(t, &ran)})
			got.check(t)
			if look, save := got.result("mcp__drover__look"), got.result("mcp__drover__save"); look != x.look || save != x.save {
				t.Errorf("look: %q, save: %q, want %q and %q", look, save, x.look, x.save)
			}
		})
	}
}

// Without isolation root may not use bypassPermissions outside of a sandbox. With a host, default does the
// same.
func TestPermissionMode_RootOutsideOfASandbox(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is an ordinary user, to whom the CLI gives every mode: run the tests as root")
	}
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(write(cli, "out.txt"), bash("rm -rf ./ran && touch ran && cat /etc/hostname > copy")), script.Text("Done.")).RequireAllUsed()
	runIsolation := &isolation.Isolation{Weakest: isolation.LevelHost, Sandbox: &isolation.Sandbox{Disabled: true}}
	runner, err := agent.NewRunner(claudecode.New(cli.Options(model)).In(runIsolation), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := record(t, runner.Run(inTime(t), agent.Request{Prompt: "go", Settings: agent.Settings{Permissions: levels("aaa")}}))
	got.check(t)
	if got.mode(t) != "default" || got.outcome("Write") != "ran" || got.outcome("Bash") != "ran" {
		t.Errorf("mode %q, Write %s, Bash %s; want mode default and both to run", got.mode(t), got.outcome("Write"), got.outcome("Bash"))
	}
}

// A host that is not a gate decides too, and a call that it denies is reported as denied.
func TestHost_WithoutAGateDecides(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(write(cli, "out.txt"), bash("touch ran.txt")), script.Text("Done.")).RequireAllUsed()
	host := tool.DeciderFunc(func(_ context.Context, call event.ToolCall) event.Decision {
		if call.Name == "Bash" {
			return event.Decision{Reason: "No shell here."}
		}
		return event.Decision{Verdict: event.Allow}
	})
	got := run(t, cli.Options(model), agent.Request{Prompt: "go", Host: host})
	got.check(t)
	if got.result("Write") != event.ToolSuccess || got.result("Bash") != event.ToolDenied || !model.SawText("No shell here.") {
		t.Errorf("Write ended with %q, Bash with %q", got.result("Write"), got.result("Bash"))
	}
	for _, r := range of[event.ToolResult](got) {
		if r.Name == "Bash" && r.Failure.Message != "No shell here." {
			t.Errorf("the failure is %q, want the host's own words", r.Failure.Message)
		}
	}
}
