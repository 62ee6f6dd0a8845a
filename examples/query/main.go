// SPDX-License-Identifier: Apache-2.0

// Command query puts one question to the CLI and prints the answer. The CLI runs in a cell: it sees the
// current folder and nothing else of the machine.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	opts := &claude.Options{Tools: []string{"Read", "Bash"}}
	cell, err := claudecell.Open(ctx, nil, opts, isolation.OpenOptions{})
	if err != nil {
		return err
	}
	defer cell.Close()
	for m, err := range claude.Query(ctx, "What does this project do?", opts) {
		if err != nil {
			return err
		}
		if text, ok := m.(*claude.AssistantMessage); ok {
			fmt.Fprintln(out, text.Text())
		}
	}
	return nil
}
