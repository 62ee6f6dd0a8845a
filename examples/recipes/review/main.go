// SPDX-License-Identifier: Apache-2.0

// Command review asks for a typed review of the current folder. The agent may read and call one tool of this program, for at
// most half a dollar and five minutes.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

type Review struct {
	Summary string   `json:"summary" doc:"two sentences"`
	Issues  []string `json:"issues" doc:"one sentence each"`
}

type component struct {
	Name string `json:"name" doc:"name of a component"`
}

func main() {
	owner := tool.Must("owner", "Returns the team that owns a component.", func(_ context.Context, in component) (string, error) {
		return "team " + in.Name, nil
	}, tool.ReadOnly)
	p, err := prompt.NewPrompt[Review]("recipes", "review", prompt.Markdown("task", "Task", "Review this project. Name the owner of each issue.").With(owner))
	if err != nil {
		log.Fatal(advice.Text(err))
	}
	resp, err := drover.Evaluate(context.Background(), claudecode.New(nil), p, &drover.Options{
		Settings: agent.Settings{
			Dir:         ".",
			Permissions: &gate.Permissions{FileWrite: gate.LevelDeny, ShellExecute: gate.LevelDeny, NetworkAccess: gate.LevelDeny},
			Budget:      &guard.Budget{MaxCostUSD: 0.50},
		},
		Deadline: guard.FromNow(5 * time.Minute),
	})
	if err != nil {
		log.Fatal(advice.Text(err))
	}
	fmt.Println(resp.Output.Summary)
	for _, issue := range resp.Output.Issues {
		fmt.Println("-", issue)
	}
	fmt.Printf("$%.4f\n", resp.CostUSD())
}
