// SPDX-License-Identifier: Apache-2.0

// Command hello asks an agent for a greeting and gets it as a Go value: the type of the answer is the
// schema that the agent has to keep, and the answer is checked against it again when it comes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
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

// run takes what the CLI is started with.
func run(ctx context.Context, out io.Writer, opts *claude.Options) error {
	p, err := template.Bind()
	if err != nil {
		return err
	}
	runner, err := agent.NewRunner(claudecode.New(opts), nil)
	if err != nil {
		return err
	}
	hello, err := evaluate(ctx, runner, p, session.New(nil))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, hello.Greeting)
	return nil
}

// evaluate has the agent answer a prompt.
func evaluate[Out any](ctx context.Context, runner *agent.Runner, p *prompt.Prompt[Out], s *session.Session) (answer Out, err error) {
	rendered, err := p.Render(&prompt.RenderOptions{Session: s})
	if err != nil {
		return answer, err
	}
	for e, err := range runner.Run(ctx, agent.Request{Prompt: rendered.Text, OutputSchema: rendered.OutputSchema}) {
		if err != nil {
			return answer, err
		}
		if done, ok := e.Payload.(event.Done); ok {
			if done.Status != event.DoneSuccess {
				return answer, fmt.Errorf("the run ended with %s: %s", done.Status, done.Result)
			}
			return p.Parse(done.Output)
		}
	}
	return answer, errors.New("the run had no end")
}
