// SPDX-License-Identifier: Apache-2.0

// Command ask puts one question about the current folder to an agent, and prints the answer. The agent reads, and
// changes nothing.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode"
)

func main() {
	answer, err := drover.Ask[string](context.Background(), claudecode.New(nil), "What does this project do?", nil)
	if err != nil {
		log.Fatal(advice.Text(err))
	}
	fmt.Println(answer.Output)
}
