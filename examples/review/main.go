// SPDX-License-Identifier: Apache-2.0

// Command review has an agent review a file and mend it. The agent may edit files without a question;
// whatever tools it uses are in the session afterwards.
//
//	review server/main.go
package main

import (
	"context"
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

// CodeReview is the answer.
type CodeReview struct {
	Verdict string   `json:"verdict" enum:"good,mended,bad"`
	Issues  []string `json:"issues" doc:"what was wrong, one sentence each"`
}

// Args fill the placeholders of the prompt.
type Args struct {
	FilePath string `json:"file_path"`
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: review FILE")
	}
	if err := run(context.Background(), os.Stdout, &claude.Options{}, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run takes what the CLI is started with.
func run(ctx context.Context, out io.Writer, opts *claude.Options, file string) error {
	opts.PermissionMode = claude.ModeAcceptEdits
	runner, err := agent.NewRunner(claudecode.New(opts), nil)
	if err != nil {
		return err
	}
	p, err := prompt.NewPrompt[CodeReview]("review", "code",
		prompt.Markdown("task", "Task", "Review the code in $file_path"),
	)
	if err != nil {
		return err
	}
	if p, err = p.Bind(Args{FilePath: file}); err != nil {
		return err
	}
	s := session.New(nil)
	review, err := evaluate(ctx, runner, p, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d issues\n", review.Verdict, len(review.Issues))
	for e := range s.Events() {
		if call, ok := e.Payload.(session.ToolInvoked); ok {
			fmt.Fprintf(out, "Tool used: %s\n", call.Name)
		}
	}
	return nil
}

// evaluate has the agent answer a prompt, and tells the session of the tools that it uses.
func evaluate[Out any](ctx context.Context, runner *agent.Runner, p *prompt.Prompt[Out], s *session.Session) (answer Out, err error) {
	rendered, err := p.Render(&prompt.RenderOptions{Session: s})
	if err != nil {
		return answer, err
	}
	var done event.Done
	calls := map[string]event.ToolCall{}
	for e, err := range runner.Run(ctx, agent.Request{Prompt: rendered.Text, OutputSchema: rendered.OutputSchema}) {
		if err != nil {
			return answer, err
		}
		switch what := e.Payload.(type) {
		case event.ToolCall:
			calls[what.ID] = what
		case event.ToolResult:
			err = record(ctx, s, calls[what.ID], what)
		case event.Done:
			done = what
		}
		if err != nil {
			return answer, err
		}
	}
	if done.Status != event.DoneSuccess {
		return answer, fmt.Errorf("the run ended with %s: %s", done.Status, done.Result)
	}
	return p.Parse(done.Output)
}

func record(ctx context.Context, s *session.Session, call event.ToolCall, result event.ToolResult) error {
	_, err := s.RecordTool(ctx, session.ToolInvoked{
		CallID: result.ID, Name: result.Name, Source: session.NativeTool, Adapter: claudecode.Agent,
		AgentID: call.AgentID, Params: call.Input, Dir: call.Dir,
		Status: result.Status, Value: result.Output, Duration: result.Duration,
	})
	return err
}
