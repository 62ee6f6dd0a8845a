// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"fmt"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
)

// newReviewer makes an agent that reads, thinks hard, and stops after half a dollar.
func newReviewer(base *claude.Options) (*claudecode.Adapter, error) {
	return claudecode.FromConfig(claudecode.Config{
		Client:       claudecode.ClientConfig{MaxTurns: 20, MaxBudgetUSD: 0.50},
		Model:        claudecode.ModelConfig{Reasoning: claudecode.ReasoningMax},
		AllowedTools: []string{"Read", "Glob", "Grep"},
		Base:         base,
	})
}

func ExampleFromConfig() {
	reviewer, err := newReviewer(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reviewer.Agent())
	// Output: claude-code
}

// What the CLI has no way to do is refused when the adapter is made, all of it at once.
func ExampleFromConfig_refused() {
	_, err := claudecode.FromConfig(claudecode.Config{
		Model: claudecode.ModelConfig{
			Model: "claude-opus-4-5", Reasoning: claudecode.ReasoningMax, Seed: new(int64(7)), Stop: []string{"END"},
		},
	})
	fmt.Println(err)
	// Output:
	// claudecode: Config.Model: the CLI has no way to pass these on: Seed, Stop
	//   next: leave them out
	// claudecode: Config.Model.Reasoning: the CLI does not ask the model claude-opus-4-5 for the effort "max"
	//   next: use one that the model takes: low, medium, high
}
