// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/claude/transcript"
)

// plugin writes a plugin with two skills and an MCP server.
func (r *effectRun) plugin(t *testing.T, name string) string {
	t.Helper()
	r.write(t, name+"/.claude-plugin/plugin.json", `{"name":"`+name+`","version":"1.0.0"}`)
	for _, skill := range []string{"one", "two"} {
		r.write(t, name+"/skills/"+skill+"/SKILL.md", "---\nname: "+skill+"\ndescription: what "+name+" "+skill+" is for\n---\nBODY OF "+skill+"\n")
	}
	r.write(t, name+"/.mcp.json", `{"mcpServers":{"server":{"command":"cat"}}}`)
	return filepath.Join(r.cli.Root, name)
}

// mcpNames are the MCP servers of the session.
func (r *effectRun) mcpNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, s := range r.init(t).MCPServers {
		names = append(names, s.Name)
	}
	return names
}

func promptEffects() []optionEffect {
	return []optionEffect{
		{
			name:  "preset prompt",
			turns: []script.Turn{script.Text("ok")},
			set: func(_ *testing.T, r *effectRun) {
				r.opts.SystemPrompt = claude.PresetPrompt{Append: "APPENDED TEXT", ExcludeDynamicSections: true}
				r.opts.PermissionMode, r.opts.PlanModeInstructions, r.opts.Title = claude.ModePlan, "PLAN OF OUR OWN", "My title"
			},
			checks: map[string]func(*testing.T, *effectRun){
				"PresetPrompt.Append": saw("APPENDED TEXT"),
				"PresetPrompt.ExcludeDynamicSections": func(t *testing.T, r *effectRun) {
					if text := r.first(t).System.Text(); strings.Contains(text, r.cli.Work) || len(text) < 1000 {
						t.Errorf("the system prompt of %d characters names the directory", len(text))
					}
				},
				"Options.PlanModeInstructions": saw("PLAN OF OUR OWN"),
				"Options.Title":                titled,
			},
		},
		{
			name:  "prompt file, plugins and some skills",
			turns: []script.Turn{script.Call("Skill", script.Input{"skill": "plug:one"}), script.Text("ok")},
			set: func(t *testing.T, r *effectRun) {
				r.opts.SystemPrompt = claude.PromptFile{Path: r.write(t, "prompt.txt", "PROMPT OF A FILE")}
				r.opts.Plugins = []claude.Plugin{{Path: r.plugin(t, "plug")}, {Path: r.plugin(t, "quiet"), SkipMCP: true}}
				r.opts.Skills, r.opts.StrictMCP = &claude.Skills{Names: []string{"plug:one"}}, false
				r.opts.HookEvents, r.opts.Settings = true, json.RawMessage(`{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"echo from the hook"}]}]}}`)
			},
			checks: map[string]func(*testing.T, *effectRun){
				"PromptFile.Path": saw("PROMPT OF A FILE"),
				"Options.Plugins": pluginsLoaded("plug", "quiet"),
				"Plugin.Path":     pluginsLoaded("plug"),
				"Plugin.SkipMCP": func(t *testing.T, r *effectRun) {
					if names := r.mcpNames(t); !slices.Contains(names, "plugin:plug:server") || slices.Contains(names, "plugin:quiet:server") {
						t.Errorf("MCP servers %v, want that of plug and not that of quiet", names)
					}
				},
				"Skills.Names": func(t *testing.T, r *effectRun) {
					if !r.first(t).SawText("what plug one is for") || r.first(t).SawText("what plug two is for") {
						t.Error("the model received other skills than plug:one")
					}
					if text, isError, _ := r.model.ToolResult("Skill"); isError {
						t.Errorf("the skill was not allowed: %s", text)
					}
				},
				"Options.HookEvents": equal("the presence of hook messages", func(_ *testing.T, r *effectRun) bool { return len(of[*claude.HookResponse](r.messages)) > 0 }, true),
				"Options.Settings":   saw("from the hook"),
			},
		},
		{
			name:  "no skills",
			turns: []script.Turn{script.Text("ok")},
			set: func(t *testing.T, r *effectRun) {
				r.opts.Plugins, r.opts.Skills = []claude.Plugin{{Path: r.plugin(t, "plug"), SkipMCP: true}}, &claude.Skills{}
			},
			checks: map[string]func(*testing.T, *effectRun){
				"Options.Skills": equal("the mention of a skill", func(t *testing.T, r *effectRun) bool { return r.first(t).SawText("what plug one is for") }, false),
			},
		},
		{
			name:  "all skills",
			turns: []script.Turn{script.Call("Skill", script.Input{"skill": "plug:two"}), script.Text("ok")},
			set: func(t *testing.T, r *effectRun) {
				r.opts.Plugins, r.opts.Skills = []claude.Plugin{{Path: r.plugin(t, "plug"), SkipMCP: true}}, &claude.Skills{All: true}
			},
			checks: map[string]func(*testing.T, *effectRun){"Skills.All": func(t *testing.T, r *effectRun) {
				if text, isError, ok := r.model.ToolResult("Skill"); isError || !ok || !r.first(t).SawText("what plug one is for") {
					t.Errorf("the skill was not allowed or not sent to the model: %s", text)
				}
			}},
		},
		{
			name: "plugins in the handshake", newOnly: true,
			turns: []script.Turn{script.Text("ok")},
			set: func(t *testing.T, r *effectRun) {
				r.opts.Plugins, r.opts.PluginsInInitialize = []claude.Plugin{{Path: r.plugin(t, "plug"), SkipMCP: true}}, true
			},
			checks: map[string]func(*testing.T, *effectRun){"Options.PluginsInInitialize": pluginsLoaded("plug")},
		},
		snapshotEffect("TextPrompt.Snapshot", func(text string, snapshot *bool) claude.SystemPrompt {
			return claude.TextPrompt{Blocks: []string{text}, Snapshot: snapshot}
		}),
		snapshotEffect("PresetPrompt.Snapshot", func(text string, snapshot *bool) claude.SystemPrompt {
			return claude.PresetPrompt{Append: text, Snapshot: snapshot}
		}),
	}
}

func pluginsLoaded(want ...string) func(*testing.T, *effectRun) {
	return func(t *testing.T, r *effectRun) {
		t.Helper()
		var names []string
		for _, p := range r.init(t).Plugins {
			names = append(names, p.Name)
		}
		for _, name := range want {
			if !slices.Contains(names, name) {
				t.Errorf("plugins %v lack %s", names, name)
			}
		}
	}
}

func titled(t *testing.T, r *effectRun) {
	if err := r.client.Close(); err != nil { // the transcript is complete when the CLI has ended
		t.Fatal(err)
	}
	list, err := transcript.List(t.Context(), transcript.ListOptions{Options: transcript.Options{Dir: r.cli.Config}})
	if err != nil || len(list) != 1 || list[0].Title != "My title" {
		t.Errorf("sessions %+v (%v), want one called My title", list, err)
	}
}

// snapshotEffect resumes a conversation with another prompt: without a snapshot the new one counts.
func snapshotEffect(field string, prompt func(text string, snapshot *bool) claude.SystemPrompt) optionEffect {
	return optionEffect{
		name: field, newOnly: true,
		turns: []script.Turn{script.Text("ok").Always()},
		run: func(t *testing.T, r *effectRun) {
			r.opts.SessionID, r.opts.SystemPrompt = someUUID, prompt("THE OLD PROMPT", new(false))
			r.connect(t)
			r.turn(t, claude.Text("hi"))
			if err := r.client.Close(); err != nil {
				t.Fatal(err)
			}
			r.opts.SessionID, r.opts.Resume, r.opts.SystemPrompt = "", someUUID, prompt("THE NEW PROMPT", new(false))
			r.connect(t)
			r.turn(t, claude.Text("hi again"))
		},
		checks: map[string]func(*testing.T, *effectRun){field: func(t *testing.T, r *effectRun) {
			if last := r.model.LastRequest(); !last.SawText("THE NEW PROMPT") || last.SawText("THE OLD PROMPT") {
				t.Error("the recorded prompt was sent, although none was to be recorded")
			}
		}},
	}
}
