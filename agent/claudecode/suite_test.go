// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
)

func TestAdapter_PassesTheSuite(t *testing.T) {
	cli := claudetest.CLI(t)
	seen := script.HasToolResult("Bash")
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "echo hello"}).When(script.Not(seen)).Always(),
		script.Text("It says hello.").When(seen).Always(),
	)
	agenttest.TestAdapter(t, agenttest.Subject{
		New:     func(*testing.T) agent.Adapter { return newAdapter(t, cli.Options(model)) },
		Missing: func(*testing.T) agent.Adapter { return claudecode.New(&claude.Options{CLIPath: "/nowhere/claude"}) },
		Request: agent.Request{Prompt: "Say hello.", Settings: agent.Settings{Dir: cli.Work}},
		Calls: func(t *testing.T, calls []event.ToolCall) agent.Adapter {
			var turns []script.Turn
			for _, c := range calls {
				var input script.Input
				if err := json.Unmarshal(c.Input, &input); err != nil {
					t.Fatal(err)
				}
				turns = append(turns, script.Reply(script.ToolCall{ID: string(c.ID), Name: c.Name, Input: input}))
			}
			return newAdapter(t, cli.Options(claudetest.NewModel(t, append(turns, script.Text("Done.").Always())...)))
		},
		Changes: func(file string) []event.ToolCall {
			path, _ := json.Marshal(file)
			return []event.ToolCall{
				{Name: "Write", Input: json.RawMessage(`{"content":"x","file_path":` + string(path) + `}`)},
				{Name: "Edit", Input: json.RawMessage(`{"old_string":"","new_string":"x","file_path":` + string(path) + `}`)},
				{Name: "Bash", Input: json.RawMessage(`{"description":"d","command":"touch ` + file + `"}`)},
			}
		},
	})
}

// Readers of --json have only the page.
func TestDocs_NameEveryFieldOfTheAdaptersEvents(t *testing.T) {
	text, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "\n## Kinds that agents add\n")
	page, _, _ = strings.Cut(page, "\n## ")
	for _, p := range []event.Payload{claudecode.Task{}, claudecode.Tokens{}, claudecode.Compaction{}, claudecode.RateLimit{}} {
		names := []string{string(p.EventKind())}
		for field := range reflect.TypeOf(p).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
		for _, name := range names {
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("the page does not name %s of %T", name, p)
			}
		}
	}
}
