// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"fmt"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agentfile"
)

func ExampleParse() {
	f, err := agentfile.Parse([]byte(`
version: 1
args:
  path: {doc: what to review}
sections:
  - {key: task, title: Task, text: "Review ${path}."}
limits: {time: 5m, usd: 0.50}
`), "review.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := f.Prompt(map[string]string{"path": "src"})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := p.Render(nil)
	fmt.Println(r.Text, err)
	fmt.Println(f.Options().Budget.MaxCostUSD)
	// Output:
	// ## 1. Task (task)
	//
	// Review src. <nil>
	// 0.5
}

func ExampleProblem() {
	_, err := agentfile.Parse([]byte("version: 1\nsection: []\nlimits: {time: 5}\n"), "review.yaml")
	fmt.Println(advice.Text(err))
	// Output:
	// review.yaml:1:1: key "sections" is missing
	//   next: add sections: The prompt, in parts.
	// review.yaml:2:1: section: there is no such key
	//   next: write sections
	// review.yaml:3:10: limits.time: must be a string, got an integer
	//   next: fix it: The time of a run: 90s, 5m, 1h30m.
}
