// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// bareSettings put the CLI into the mode in which it calls no hooks.
const bareSettings = `{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`

// noShell is an engine that denies Bash alone, and of Bash not what the tests need for themselves.
func noShell() *gate.Engine {
	return gate.NewEngine(gate.ForClaude(judgedBy(func(c *gate.Call) (event.Decision, bool) {
		if c.Tool == "Bash" && !strings.Contains(string(c.Input), "settings.json") {
			return event.Decision{Reason: "No shell."}, true
		}
		return event.Decision{Verdict: event.Allow}, true
	})), nil)
}

// No message to the CLI keeps it from asking the gate, or makes it ask about another
// tool than the one that runs.
func TestCLI_NoOptionDisablesTheGate(t *testing.T) {
	const off = `{"disableAllHooks":true,"allowManagedHooksOnly":true,"strictPluginOnlyCustomization":true,"env":{"CLAUDE_CODE_SIMPLE":"1"}}`
	settings := func(t *testing.T, cli *claudetest.RealCLI, _ *claudetest.Model, o *claude.Options) {
		if err := os.WriteFile(filepath.Join(cli.Config, "settings.json"), []byte(off), 0o600); err != nil {
			t.Fatal(err)
		}
		cli.WriteFile(t, ".claude/settings.json", off)
		cli.WriteFile(t, ".claude/settings.local.json", off)
		o.SettingSources, o.ManagedSettings = nil, json.RawMessage(off)
	}
	environment := func(_ *testing.T, cli *claudetest.RealCLI, model *claudetest.Model, o *claude.Options) {
		cli.SetEnv(o, model, map[string]string{"CLAUDE_CODE_SIMPLE": "1", "CLAUDE_CODE_SAFE_MODE": "1"})
	}
	alias := func(_ *testing.T, _ *claudetest.RealCLI, _ *claudetest.Model, o *claude.Options) {
		o.ToolAliases = map[string]string{"Read": "Bash"}
	}
	for _, tt := range []struct {
		name  string
		get   func(testing.TB) *claudetest.RealCLI
		apply func(*testing.T, *claudetest.RealCLI, *claudetest.Model, *claude.Options)
		tool  string
	}{
		{"settings files", claudetest.CLI, settings, "Bash"},
		{"settings files of the oldest CLI", claudetest.OldestCLI, settings, "Bash"},
		{"environment", claudetest.CLI, environment, "Bash"},
		{"environment of the oldest CLI", claudetest.OldestCLI, environment, "Bash"},
		{"an alias", claudetest.CLI, alias, "Read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cli := tt.get(t)
			made := bash("toolu_1", "touch made.txt")
			made.Name = tt.tool
			model := claudetest.NewModel(t, script.Reply(made), script.Text("Done."))
			opts := cli.Options(model)
			opts.PermissionMode = claude.ModeBypassPermissions
			bind(t, noShell(), opts)
			tt.apply(t, cli, model, opts) // also what Bind would refuse
			turn(t, claudetest.Connect(t, opts), "make it")
			if text, failed, _ := model.ToolResult("toolu_1"); !failed || !strings.Contains(text, "No shell.") || exists(cli, "made.txt") {
				t.Errorf("the model saw %q (failed: %t); the file exists: %t", text, failed, exists(cli, "made.txt"))
			}
		})
	}
}

// The CLI reads settings again while it runs. A model that may write them must not switch the gate
// off with them.
func TestCLI_SettingsWrittenByTheModelDoNotDisableTheGate(t *testing.T) {
	cli := claudetest.CLI(t)
	settings := filepath.Join(cli.Config, "settings.json")
	model := claudetest.NewModel(t,
		script.Reply(bash("toolu_settings", "echo '"+bareSettings+"' > "+settings)), script.Text("Done."),
		script.Reply(bash("toolu_1", "touch made.txt")), script.Text("Done."))
	opts := cli.Options(model)
	opts.SettingSources = []string{"user"}
	opts.PermissionMode = claude.ModeBypassPermissions
	reread := make(chan struct{}, 10)
	opts.Hooks = []claude.Hook{claude.On("", func(context.Context, *claude.ConfigChangeInput) (*claude.ConfigChangeOutput, error) {
		reread <- struct{}{}
		return nil, nil
	})}
	bind(t, noShell(), opts)
	c := claudetest.Connect(t, opts)
	turn(t, c, "write the settings")
	if content, err := os.ReadFile(settings); strings.TrimSpace(string(content)) != bareSettings {
		t.Fatalf("the settings are %q (%v), so that this test shows nothing", content, err)
	}
	select {
	case <-reread: // the CLI waits until a file has come to rest
	case <-time.After(30 * time.Second):
		t.Fatal("the CLI does not read the settings again, so that this test shows nothing")
	}
	turn(t, c, "make it")
	if text, failed, _ := model.ToolResult("toolu_1"); !failed || !strings.Contains(text, "No shell.") || exists(cli, "made.txt") {
		t.Errorf("the model saw %q (failed: %t); the file exists: %t", text, failed, exists(cli, "made.txt"))
	}
}

// The CLI makes one name of two servers, and calls the tool of the one that is not known.
func TestCLI_ServerThatTakesOurNameIsNotCalled(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(script.ToolCall{ID: "toolu_1", Name: "mcp__my_desk__save"}), script.Text("Done."))
	ran := newTally()
	serving := func(name string) claude.MCPServer {
		server, err := claude.NewToolServer(name, "1", nil, claude.MustTool("save", "Saves.", func(context.Context, struct{}) (claude.ToolResult, error) {
			ran.add(name)
			return claude.TextResult("saved"), nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		return server.Server()
	}
	opts := cli.Options(model)
	opts.MCPServers = map[string]claude.MCPServer{"my_desk": serving("my_desk")}
	known := gate.Knows("my_desk", tool.MustRegistry(nil, declared(t, "save")))
	bind(t, gate.NewEngine(gate.ForClaude(known, gate.AllowTools("mcp__my_desk__save")), nil), opts)
	opts.MCPServers["my.desk"] = serving("my.desk") // as settings could
	turn(t, claudetest.Connect(t, opts), "save it")
	if text, failed, _ := model.ToolResult("toolu_1"); !failed || !strings.Contains(text, "is not the server that the policies know by this name") || ran.of("my.desk") != 0 {
		t.Errorf("the model saw %q (failed: %t); the other server was called %d times", text, failed, ran.of("my.desk"))
	}
}
