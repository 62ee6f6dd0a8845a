// SPDX-License-Identifier: Apache-2.0

// Command hello asks an agent for a greeting and gets it as a Go value: the type of the answer is the
// schema that the agent has to keep, and the answer is checked against it again when it comes.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/prompt"
)

// Hello is the answer.
type Hello struct {
	Greeting string `json:"greeting" minLength:"1"`
}

var template = prompt.Must[Hello]("demo", "hello", prompt.Markdown("task", "Task", "Say hello."))

func main() {
	if err := run(context.Background(), os.Stdout, nil); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts *claude.Options) error {
	p, err := template.Bind()
	if err != nil {
		return err
	}
	resp, err := drover.Evaluate(ctx, claudecode.New(opts), p, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, resp.Output.Greeting)
	return nil
}
