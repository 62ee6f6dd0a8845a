// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"fmt"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// newReviewer makes an agent whose commands may reach one host, with a bound for each answer.
func newReviewer(base *claude.Options) (*claudecode.Adapter, error) {
	return claudecode.FromConfig(claudecode.Config{
		Isolation: &isolation.Isolation{Network: isolation.WithDomains("docs.example.com")},
		MaxTokens: 8000,
		Base:      base,
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
		SettingSources: []string{"project"}, Seed: new(int64(7)), Stop: []string{"END"},
	})
	fmt.Println(advice.Text(err))
	// Output:
	// claudecode: Config.SettingSources: project settings are in the workspace, where the agent can write them
	//   next: put them into Base.Settings
	// claudecode: Config: the CLI has no way to pass these on: Seed, Stop
	//   next: leave them out
}
