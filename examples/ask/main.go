// SPDX-License-Identifier: Apache-2.0

// Command ask puts one question to the CLI and prints what it says.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/drover-agents/drover/claude"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	for m, err := range claude.Query(ctx, "What does this project do?", &claude.Options{
		Tools: []string{"Read", "Bash"},
	}) {
		if err != nil {
			return err
		}
		if text, ok := m.(*claude.AssistantMessage); ok {
			fmt.Fprintln(out, text.Text())
		}
	}
	return nil
}
