// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"fmt"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// An adapter can be made, and asked, on a machine that has no CLI.
func ExampleNew() {
	a := claudecode.New(&claude.Options{CLIPath: "/nowhere/claude"})
	ready := a.Ready(context.Background())
	fmt.Println(a.Agent(), "is", ready.State)
	fmt.Println(ready.Detail)
	fmt.Println("next:", ready.Repair)
	// Output:
	// claude-code is missing
	// claude: CLI not found: /nowhere/claude
	// next: npm install --global @anthropic-ai/claude-code@2.1.325
}

// A Runner numbers the events, enforces the permissions and remembers the conversation.
func ExampleAdapter_Run() {
	runner, err := agent.NewRunner(claudecode.New(nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := agent.Request{
		Prompt: "Find the slowest test, and say why it is slow.",
		Settings: agent.Settings{
			Permissions: &gate.Permissions{FileWrite: gate.LevelDeny, ShellExecute: gate.LevelAllow},
			MaxTurns:    20,
		},
	}
	for e, err := range runner.Run(context.Background(), request) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch p := e.Payload.(type) {
		case event.Text:
			fmt.Println(p.Content)
		case event.Done:
			fmt.Println(p.Status, p.Usage.TotalCostUSD())
		}
	}
}
