// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/drovertest"
)

// Claude Code has all capabilities, with the real CLI.
func TestClaudeCode_PassesTheSuiteOfEvaluations(t *testing.T) {
	cli := claudetest.CLI(t)
	drovertest.TestAdapter(t, drovertest.Subject{
		New: func(t *testing.T, steps ...drovertest.Step) (agent.Adapter, drovertest.Model) {
			model := claudetest.NewModel(t, turnsOf(steps)...)
			opts := cli.Options(model)
			opts.Dir, opts.PermissionMode = "", claude.ModeBypassPermissions
			a := claudecode.New(opts)
			return a, scripted{model}
		},
		Tool: func(name string) string { return "mcp__drover__" + name },
		Native: drovertest.Native{
			Write: func(path, content string) drovertest.Call {
				return drovertest.Call{Tool: "Write", Input: script.Input{"file_path": path, "content": content}}
			},
			Shell: func(command string) drovertest.Call {
				return drovertest.Call{Tool: "Bash", Input: script.Input{"command": command}}
			},
		},
		Capabilities: drovertest.All(),
	})
}

// turnsOf are the steps in the words of the scripted model.
func turnsOf(steps []drovertest.Step) []script.Turn {
	var turns []script.Turn
	for _, s := range steps {
		turn := turnOf(s)
		if s.Tokens > 0 {
			turn = turn.Metered(script.Usage{Input: int(s.Tokens), Output: 1})
		}
		turns = append(turns, turn)
	}
	return turns
}

func turnOf(s drovertest.Step) script.Turn {
	switch {
	case s.Wait:
		return script.Hang()
	case s.Answer != nil:
		return script.Structured(object(s.Answer))
	}
	var blocks []script.Block
	if s.Text != "" {
		blocks = append(blocks, script.TextBlock{Text: s.Text})
	}
	for _, c := range s.Calls {
		blocks = append(blocks, script.ToolCall{Name: c.Tool, Input: c.Input})
	}
	return script.Reply(blocks...)
}

// object is an answer that the CLI takes: it takes objects alone.
func object(v any) any {
	raw, err := json.Marshal(v)
	if err == nil && len(raw) > 0 && raw[0] == '{' {
		return v
	}
	return script.Input{"value": v}
}

type scripted struct{ model *claudetest.Model }

func (s scripted) Read(text string) bool { return s.model.SawText(text) }
func (s scripted) Calls() int            { return len(s.model.Requests()) }

func (s scripted) Await(ctx context.Context, calls int) error {
	return s.model.WaitRequests(ctx, calls)
}
