// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func settingsEffects() []optionEffect {
	return []optionEffect{
		{
			name: "settings",
			turns: []script.Turn{
				script.Func(func(r *script.Request) script.Turn {
					return script.Reply(
						script.ToolCall{Name: "Bash", Input: script.Input{"command": "printenv FROM_FILE"}},
						script.ToolCall{Name: "Read", Input: script.Input{"file_path": workFile(r)}},
						script.ToolCall{Name: "Write", Input: script.Input{"file_path": "x", "content": "y"}})
				}), script.Text("ok"),
			},
			set: func(t *testing.T, r *effectRun) {
				r.opts.SettingsFile = r.write(t, "settings.json", `{"env":{"FROM_FILE":"seen in bash"}}`)
				r.opts.ManagedSettings = json.RawMessage(`{"permissions":{"deny":["Write"]}}`)
				r.opts.PermissionMode, r.opts.AllowedTools = claude.ModeAcceptEdits, []string{"Bash(printenv *)"}
				r.opts.SettingSources = []string{"user"}
				r.opts.AddDirs = []string{filepath.Join(r.cli.Root, "added")}
				r.write(t, "added/file.txt", "CONTENT OF THE ADDED")
				r.write(t, filepath.Join(r.cli.Config, "CLAUDE.md"), "MEMORY OF THE USER")
				r.write(t, "work/CLAUDE.md", "MEMORY OF THE PROJECT")
			},
			run: func(t *testing.T, r *effectRun) {
				r.connect(t)
				r.turn(t, claude.Text("read "+filepath.Join(r.cli.Root, "added", "file.txt")))
			},
			checks: map[string]func(*testing.T, *effectRun){
				"Options.SettingsFile": toolReturned("Bash", "seen in bash"),
				"Options.AddDirs":      toolReturned("Read", "CONTENT OF THE ADDED"),
				"Options.ManagedSettings": func(t *testing.T, r *effectRun) {
					if text, isError, _ := r.model.ToolResult("Write"); !isError {
						t.Errorf("Write ran: %s", text)
					}
				},
				"Options.SettingSources": func(t *testing.T, r *effectRun) {
					if !r.first(t).SawText("MEMORY OF THE USER") || r.first(t).SawText("MEMORY OF THE PROJECT") {
						t.Error("the model saw other settings than the user's")
					}
				},
			},
		},
		{
			name: "project root", newOnly: true,
			turns: []script.Turn{script.Text("ok")},
			set: func(t *testing.T, r *effectRun) {
				r.opts.SettingSources, r.opts.ProjectConfigRoot = []string{"project"}, filepath.Join(r.cli.Root, "root")
				r.write(t, "root/.claude/skills/rooted/SKILL.md", "---\nname: rooted\ndescription: skill of the root\n---\nx\n")
			},
			checks: map[string]func(*testing.T, *effectRun){"Options.ProjectConfigRoot": saw("skill of the root")},
		},
		sandboxSettingsEffect(),
		{
			name: "sandboxed Bash",
			turns: []script.Turn{
				script.Call("Bash", script.Input{"command": "printenv ANTHROPIC_API_KEY; touch inside && echo made; touch ../outside && echo escaped"}), script.Text("ok"),
			},
			set: func(_ *testing.T, r *effectRun) {
				r.opts.AllowedTools = []string{"Bash"}
				r.opts.Sandbox = &claude.Sandbox{
					Enabled: new(true), AllowUnsandboxedCommands: new(false),
					Credentials: &claude.SandboxCredentials{EnvVars: []claude.SandboxSecret{{Name: "ANTHROPIC_API_KEY", Mode: "deny"}}},
				}
			},
			checks: map[string]func(*testing.T, *effectRun){"Options.Sandbox": func(t *testing.T, r *effectRun) {
				text, _, _ := r.model.ToolResult("Bash")
				if !strings.Contains(text, "made") || strings.Contains(text, "escaped") || strings.Contains(text, "fake") {
					t.Errorf("the sandboxed command printed %q, want no key and no file outside", text)
				}
			}},
		},
	}
}

// A sandbox that the CLI cannot read must not be left out in silence.
func TestSandbox_InvalidSandboxFailsConnect(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *claudetest.RealCLI{claude.PinnedVersion: claudetest.CLI, claude.OldestTested: claudetest.OldestCLI} {
		t.Run(name, func(t *testing.T) {
			opts := start(t).Options(claudetest.NewModel(t))
			opts.Sandbox = &claude.Sandbox{Enabled: new(true), FailIfUnavailable: new(false), Extra: map[string]any{"excludedCommands": "not a list"}}
			c, err := claude.Connect(t.Context(), opts)
			if err == nil {
				_ = c.Close()
			}
			if e, ok := errors.AsType[*claude.OptionError](err); !ok || e.Option != "Sandbox" {
				t.Errorf("got %v, want an OptionError for Sandbox", err)
			}
		})
	}
}

func toolReturned(tool, want string) func(*testing.T, *effectRun) {
	return func(t *testing.T, r *effectRun) {
		t.Helper()
		if text, isError, ok := r.model.ToolResult(tool); isError || !ok || !strings.Contains(text, want) {
			t.Errorf("the model saw %q of %s, want %q", text, tool, want)
		}
	}
}

// sandboxSettingsEffect hands every key of the sandbox to the CLI in the form of the table, and
// looks for it in the settings that the CLI reports as in force.
func sandboxSettingsEffect() optionEffect {
	e := optionEffect{
		name:   "sandbox settings",
		checks: map[string]func(*testing.T, *effectRun){},
		run: func(t *testing.T, r *effectRun) {
			all := map[string]any{}
			for _, row := range sandboxRows() {
				if !(r.old && row.tooOld) {
					merge(all, sandboxOf(t, row))
				}
			}
			sandbox := all["sandbox"].(map[string]any)
			sandbox["enabled"] = false
			text, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			r.opts.Settings = text
			r.connect(t)
			report, err := r.client.Settings(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.notes["effective"] = string(report.Effective)
		},
	}
	for _, row := range sandboxRows() {
		e.checks[row.field] = func(t *testing.T, r *effectRun) {
			if r.old && row.tooOld {
				t.Skip("this CLI refuses the option, which TestOldCLI_UnsupportedOptionIsAnError shows")
			}
			contained(t, "", sandboxOf(t, row), object(t, []byte(r.notes["effective"])))
		}
	}
	return e
}

// sandboxOf is the settings object of a row.
func sandboxOf(t *testing.T, row optionRow) map[string]any {
	t.Helper()
	return object(t, []byte(strings.TrimPrefix(row.forms[0].wire.args[0], "--settings=")))
}

// merge puts b into a, objects member by member.
func merge(a, b map[string]any) {
	for k, v := range b {
		inner, ok := v.(map[string]any)
		into, there := a[k].(map[string]any)
		if ok && there {
			merge(into, inner)
			continue
		}
		if list, ok := v.([]any); ok {
			if before, there := a[k].([]any); there && fmt.Sprint(before) != fmt.Sprint(list) {
				v = append(before, list...)
			}
		}
		a[k] = v
	}
}

// contained checks that all of want is in got.
func contained(t *testing.T, path string, want, got any) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s is %v, want an object", path, got)
			return
		}
		for k, v := range w {
			if path+"."+k != ".sandbox.enabled" {
				contained(t, path+"."+k, v, g[k])
			}
		}
	case []any:
		g, _ := got.([]any)
		for _, v := range w {
			if !containsValue(g, v) {
				t.Errorf("%s is %v, want it to hold %v", path, got, v)
			}
		}
		if g == nil {
			t.Errorf("%s is not there", path)
		}
	default:
		if got != want && !strings.HasSuffix(path, "failIfUnavailable") {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

func containsValue(list []any, v any) bool {
	for _, x := range list {
		if cmp.Equal(x, v) {
			return true
		}
	}
	return false
}
