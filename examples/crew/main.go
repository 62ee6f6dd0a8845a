// SPDX-License-Identifier: Apache-2.0

// Command crew has two agents look at the same folder at once: an author, who may write files but run
// no commands, and a critic, who may only read. Their events are one stream.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

func main() {
	if err := run(context.Background(), os.Stdout, nil, nil); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, author, critic *claude.Options) error {
	writes, err := agent.NewRunner(claudecode.New(author), &agent.RunnerOptions{
		Role: "author",
		Defaults: agent.Request{
			Settings: agent.Settings{
				MaxTurns:    20,
				Permissions: &gate.Permissions{FileWrite: gate.LevelAllow, ShellExecute: gate.LevelDeny},
			},
		},
	})
	if err != nil {
		return err
	}
	reads, err := agent.NewRunner(claudecode.New(critic), &agent.RunnerOptions{
		Role:     "critic",
		Policies: []gate.Policy{gate.FromRisk(gate.RiskOptions{ReadOnly: true, AgentTools: true})},
	})
	if err != nil {
		return err
	}
	for e := range agent.Parallel(ctx,
		agent.Task{Runner: writes, Request: agent.Request{Prompt: "Write a README for this folder."}},
		agent.Task{Runner: reads, Request: agent.Request{Prompt: "What is unclear about this folder?"}},
	) {
		switch p := e.Payload.(type) {
		case event.ToolCall:
			fmt.Fprintf(out, "%s: %s %s\n", e.Role, p.Name, p.Input)
		case event.ToolResult:
			fmt.Fprintf(out, "%s: %s: %s\n", e.Role, p.Name, p.Status)
		case event.Done:
			fmt.Fprintf(out, "%s: %s: %s\n", e.Role, p.Status, p.Result)
		}
	}
	return nil
}
