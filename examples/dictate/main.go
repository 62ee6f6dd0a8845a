// SPDX-License-Identifier: Apache-2.0

// Command dictate sends each line that it reads to the CLI as soon as it is there, as a prompt of one
// conversation, and prints what comes back. The CLI runs in a cell.
//
//	dictate < questions.txt
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"log"
	"os"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout, &claude.Options{}); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer, opts *claude.Options) error {
	cell, err := claudecell.Open(ctx, nil, opts, isolation.OpenOptions{})
	if err != nil {
		return err
	}
	defer cell.Close()
	for m, err := range claude.QueryStream(ctx, prompts(in), opts) {
		if err != nil {
			return err
		}
		if text, ok := m.(*claude.AssistantMessage); ok {
			fmt.Fprintln(out, text.Text())
		}
	}
	return nil
}

func prompts(in io.Reader) iter.Seq2[claude.Prompt, error] {
	return func(yield func(claude.Prompt, error) bool) {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			if !yield(claude.Text(lines.Text()), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(claude.Prompt{}, err)
		}
	}
}
