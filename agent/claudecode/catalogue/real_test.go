// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

var versions = map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI}

// A new CLI with a new tool fails here, with the tool's name: add it to the catalogue.
func TestCatalogue_HasEveryToolOfTheCLI(t *testing.T) {
	for version, get := range versions {
		for name, change := range map[string]func(o *claude.Options, vars map[string]string){
			"plain": func(*claude.Options, map[string]string) {},
			"without tool search, with a callback and a schema": func(o *claude.Options, vars map[string]string) {
				vars["ENABLE_TOOL_SEARCH"] = "false"
				o.OutputSchema = json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}}}`)
				o.CanUseTool = func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
					return claude.Allow{}, nil
				}
			},
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				cli := get(t)
				model := claudetest.NewModel(t,
					script.Call("StructuredOutput", script.Input{"ok": true}).WhenFunc(func(r *script.Request) bool { _, ok := r.Tool("StructuredOutput"); return ok }),
					script.Text("Done."), script.Text("Done."))
				opts, vars := cli.Options(model), map[string]string{}
				change(opts, vars)
				cli.SetEnv(opts, model, vars)
				names := toolsOf(t, opts)
				for _, offered := range model.Requests()[0].Tools {
					names = append(names, offered.Name) // the model may know a tool by another name
				}
				if !slices.Contains(names, "Bash") || len(names) < 20 {
					t.Fatalf("only %d tools: %v", len(names), names)
				}
				for _, offered := range model.Requests()[0].Tools {
					checkEditFields(t, offered)
				}
				for _, name := range names {
					if _, ok := catalogue.Tools().Native(name); !ok && !strings.HasPrefix(name, "mcp__") {
						t.Errorf("the catalogue lacks %s, which CLI %s has", name, cli.Version)
					}
				}
			})
		}
	}
}

// checkEditFields checks that the tool of the CLI has the fields of an edit that the catalogue names.
func checkEditFields(t *testing.T, offered script.Tool) {
	t.Helper()
	fields := catalogue.Tools().Fields(offered.Name)
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(offered.InputSchema, &schema); err != nil && offered.InputSchema != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fields.New, fields.Old, fields.All, fields.Edits} {
		if _, ok := schema.Properties[name]; name != "" && !ok {
			t.Errorf("%s of the CLI has no field %s", offered.Name, name)
		}
	}
}

// toolsOf runs a turn and returns the tools that the CLI reports.
func toolsOf(t *testing.T, opts *claude.Options) []string {
	t.Helper()
	var names []string
	for m, err := range claude.Query(t.Context(), "Hello.", opts) {
		if err != nil {
			t.Fatal(err)
		}
		if init, ok := m.(*claude.SystemInit); ok {
			names = init.Tools
		}
	}
	return names
}

// This is why the catalogue gives Skill the risks of Bash: a skill runs commands that neither hook
// nor callback sees, unless a setting forbids it.
func TestSkill_RunsCommandsWithoutAHook(t *testing.T) {
	for version, get := range versions {
		for _, c := range []struct {
			settings string
			runs     bool
		}{{`{}`, true}, {`{"disableSkillShellExecution":true}`, false}} {
			t.Run(version+" "+c.settings, func(t *testing.T) {
				cli := get(t)
				cli.WriteFile(t, ".claude/skills/touch/SKILL.md", "---\nname: touch\ndescription: Touches a file.\nallowed-tools: Bash(touch:*)\n---\nSee !`touch touched.txt`.\n")
				model := claudetest.NewModel(t, script.Call("Skill", script.Input{"skill": "touch"}), script.Text("Done."))
				opts := cli.Options(model)
				opts.SettingSources = []string{"project"}
				opts.Settings = json.RawMessage(c.settings)
				var seen []string
				opts.Hooks = []claude.Hook{claude.On("", func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
					seen = append(seen, in.ToolName)
					return claude.AllowTool(), nil
				})}
				toolsOf(t, opts)
				if _, err := os.Stat(filepath.Join(cli.Work, "touched.txt")); (err == nil) != c.runs {
					t.Errorf("the file is there: %t, want %t", err == nil, c.runs)
				}
				if want := []string{"Skill"}; !slices.Equal(seen, want) {
					t.Errorf("the hook saw %v, want %v", seen, want)
				}
			})
		}
	}
}
