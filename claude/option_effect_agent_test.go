// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/script"
)

// delegate is the call that starts the agent "reviewer", under either name of the tool.
func delegate(r *script.Request) script.Turn {
	input := script.Input{"description": "a task", "prompt": "TASK FOR THE AGENT", "subagent_type": "reviewer"}
	if _, ok := r.Tool("Agent"); ok {
		return script.Call("Agent", input)
	}
	return script.Call("Task", input)
}

// ofAgent is the first request of the subagent.
func (r *effectRun) ofAgent(t *testing.T) *script.Request {
	t.Helper()
	for _, q := range r.model.Requests() {
		if q.IsSubagent() {
			return q
		}
	}
	t.Fatal("no request of a subagent")
	return nil
}

func agentEffects() []optionEffect {
	foreground := map[string]string{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}
	self, _ := os.Executable()
	return []optionEffect{
		{
			name: "subagent",
			turns: []script.Turn{
				script.Call("Bash", script.Input{"command": "touch x"}).When(script.IsSubagent()).Times(3),
				script.Text("AGENT'S REPORT").When(script.IsSubagent()).Always(),
				script.Func(delegate), script.Text("ok").Always(),
			},
			set: func(t *testing.T, r *effectRun) {
				r.cli.SetEnv(r.opts, r.model, foreground)
				r.opts.Plugins, r.opts.ForwardSubagentText = []claude.Plugin{{Path: r.plugin(t, "plug"), SkipMCP: true}}, true
				r.opts.MCPServers = map[string]claude.MCPServer{"shared": echoServer("shared")}
				r.opts.Agents = map[string]claude.AgentDefinition{"reviewer": {
					Description: "DESCRIPTION OF THE REVIEWER", Prompt: "PROMPT OF THE REVIEWER", Tools: []string{"Bash", "Read", "mcp__shared__echo", "mcp__own__echo"}, DisallowedTools: []string{"Read"},
					Model: "claude-sonnet-4-5", Skills: []string{"plug:one"}, MaxTurns: 2, PermissionMode: claude.ModeAcceptEdits,
					MCPServers: []claude.AgentMCPServer{{Name: "shared"}, {Name: "own", Config: map[string]any{"command": self, "env": map[string]string{scriptVariable: "option-mcp"}}}},
				}}
			},
			checks: map[string]func(*testing.T, *effectRun){
				"Options.Agents":                  func(t *testing.T, r *effectRun) { r.ofAgent(t) },
				"AgentDefinition.Description":     descriptionSent,
				"AgentDefinition.Prompt":          agentSaw("PROMPT OF THE REVIEWER", "TASK FOR THE AGENT"),
				"AgentDefinition.Skills":          agentSaw("BODY OF one"),
				"AgentDefinition.Model":           equal("the agent's model", func(t *testing.T, r *effectRun) string { return r.ofAgent(t).Model }, "claude-sonnet-4-5"),
				"AgentDefinition.Tools":           agentTool("Bash", true),
				"AgentDefinition.DisallowedTools": agentTool("Read", false),
				"AgentDefinition.MCPServers":      agentTool("mcp__own__echo", true),
				"AgentMCPServer.Name":             agentTool("mcp__shared__echo", true),
				"AgentMCPServer.Config":           agentTool("mcp__own__echo", true),
				"AgentDefinition.MaxTurns": func(t *testing.T, r *effectRun) {
					n := 0
					for _, q := range r.model.Requests() {
						if q.IsSubagent() {
							n++
						}
					}
					if n != 2 {
						t.Errorf("the agent had %d calls of the model, want 2", n)
					}
				},
				"AgentDefinition.PermissionMode": func(t *testing.T, r *effectRun) {
					for _, q := range r.model.Requests() {
						if text, isError, ok := q.ToolResult("Bash"); q.IsSubagent() && ok && isError {
							t.Errorf("the agent may not edit: %s", text)
						}
					}
				},
			},
		},
		{
			name:  "text of subagents",
			turns: []script.Turn{script.Text("AGENT'S REPORT").When(script.IsSubagent()).Always(), script.Func(delegate), script.Text("ok").Always()},
			set: func(t *testing.T, r *effectRun) {
				r.cli.SetEnv(r.opts, r.model, foreground)
				r.opts.ForwardSubagentText = true
				r.opts.Agents = map[string]claude.AgentDefinition{"reviewer": {Description: "D", Prompt: "P", Background: new(false), Memory: "user"}}
			},
			checks: map[string]func(*testing.T, *effectRun){
				"Options.ForwardSubagentText": func(t *testing.T, r *effectRun) {
					for _, m := range of[*claude.AssistantMessage](r.messages) {
						if m.ParentToolUseID != "" && strings.Contains(string(m.Raw()), "AGENT'S REPORT") {
							return
						}
					}
					t.Error("the agent's text was not delivered")
				},
				"AgentDefinition.Memory": agentSaw("agent-memory"),
				"AgentDefinition.Background": func(t *testing.T, r *effectRun) {
					if n := len(r.end.Results); n != 1 {
						t.Errorf("%d results, want one: the agent ran in the foreground", n)
					}
				},
			},
		},
		{
			name:  "main agent",
			turns: []script.Turn{script.Text("ok").Always()},
			set: func(_ *testing.T, r *effectRun) {
				r.opts.Agent, r.opts.SystemPrompt = "reviewer", claude.PresetPrompt{}
				r.opts.Agents = map[string]claude.AgentDefinition{"reviewer": {Description: "D", Prompt: "PROMPT OF THE REVIEWER", InitialPrompt: "BEGIN LIKE THIS"}}
			},
			checks: map[string]func(*testing.T, *effectRun){
				"Options.Agent":                 saw("PROMPT OF THE REVIEWER"),
				"AgentDefinition.InitialPrompt": saw("BEGIN LIKE THIS"),
			},
		},
		{
			name: "effort and memory files of agents", newOnly: true,
			turns: []script.Turn{script.Text("done").When(script.IsSubagent()).Always(), script.Func(delegate), script.Text("ok").Always()},
			set: func(t *testing.T, r *effectRun) {
				r.cli.SetEnv(r.opts, r.model, foreground)
				r.opts.SettingSources = []string{"project"}
				r.write(t, "work/CLAUDE.md", "MEMORY OF THE PROJECT")
				r.opts.Agents = map[string]claude.AgentDefinition{"reviewer": {Description: "D", Prompt: "P", OmitClaudeMD: new(true), Effort: "low"}}
			},
			checks: map[string]func(*testing.T, *effectRun){
				"AgentDefinition.Effort": equal("the agent's effort", func(t *testing.T, r *effectRun) string { return r.ofAgent(t).Effort() }, "low"),
				"AgentDefinition.OmitClaudeMD": func(t *testing.T, r *effectRun) {
					if !r.first(t).SawText("MEMORY OF THE PROJECT") || r.ofAgent(t).SawText("MEMORY OF THE PROJECT") {
						t.Error("the agent saw the memory file, or the main model did not")
					}
				},
			},
		},
		{
			name:  "suggestions",
			turns: []script.Turn{script.Text("run the tests").When(script.SawText("SUGGESTION MODE")).Always(), script.Text("ok").Always()},
			run: func(t *testing.T, r *effectRun) {
				r.opts.PromptSuggestions = true
				r.connect(t)
				r.turn(t, claude.Text("hi"))
				r.turn(t, claude.Text("hi again"))
				r.turn(t, claude.Text("and again"))
			},
			checks: map[string]func(*testing.T, *effectRun){"Options.PromptSuggestions": func(t *testing.T, r *effectRun) {
				late := time.AfterFunc(30*time.Second, func() { _ = r.client.Close() })
				defer late.Stop()
				for m := range r.client.Messages() {
					if _, ok := m.(*claude.PromptSuggestion); ok {
						return
					}
				}
				t.Error("no suggestion came")
			}},
		},
	}
}

func agentSaw(texts ...string) func(*testing.T, *effectRun) {
	return func(t *testing.T, r *effectRun) {
		t.Helper()
		for _, text := range texts {
			if !r.ofAgent(t).SawText(text) {
				t.Errorf("the agent did not see %q", text)
			}
		}
	}
}

func agentTool(name string, want bool) func(*testing.T, *effectRun) {
	return func(t *testing.T, r *effectRun) {
		t.Helper()
		if names := r.ofAgent(t).ToolNames(); slices.Contains(names, name) != want {
			t.Errorf("the agent has the tools %v; %s: want %v", names, name, want)
		}
	}
}

// descriptionSent looks where either version describes its agents to the model.
func descriptionSent(t *testing.T, r *effectRun) {
	if !strings.Contains(string(r.first(t).Body), "DESCRIPTION OF THE REVIEWER") {
		t.Error("the model did not receive when to use the agent")
	}
}
