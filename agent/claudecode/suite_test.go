// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func TestClaudeCodePassesTheSuiteOfAllAdapters(t *testing.T) {
	cli := claudetest.CLI(t)
	seen := script.HasToolResult("Bash")
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "echo hello"}).When(script.Not(seen)).Always(),
		script.Text("It says hello.").When(seen).Always(),
	)
	agenttest.TestAdapter(t, agenttest.Subject{
		New:     func(*testing.T) agent.Adapter { return claudecode.New(cli.Options(model)) },
		Missing: func(*testing.T) agent.Adapter { return claudecode.New(&claude.Options{CLIPath: "/nowhere/claude"}) },
		Request: agent.Request{Prompt: "Say hello."},
	})
}
