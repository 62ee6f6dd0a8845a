// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package isolation_test

import (
	"context"
	"fmt"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// A program can refuse to run agents on a machine whose isolation does not hold.
func ExampleProbe() {
	report, err := isolation.Probe(context.Background(), &isolation.Isolation{Weakest: isolation.LevelHost}, claudecell.Program(&claude.Options{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, attempt := range report.Attempts {
		if attempt.Name == "read the key in the environment" {
			fmt.Println(attempt.Name, "- blocked:", attempt.Blocked)
		}
	}
	// Output: read the key in the environment - blocked: true
}
