// SPDX-License-Identifier: Apache-2.0

// Command limits gives an agent five minutes and 50,000 tokens. When the tokens are spent the agent is
// stopped in the middle of its turn; with -finish its tools are denied instead, so that it can still say
// how far it has come. When the time is over it is stopped in any case.
//
//	limits -finish
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
)

var template = prompt.Must[prompt.Text]("limits", "summary",
	prompt.Markdown("task", "Task", "Read the files of this folder and say what they are about."))

func main() {
	finish := flag.Bool("finish", false, "let the agent come to an end when the tokens are spent")
	flag.Parse()
	budget := guard.Budget{MaxTotalTokens: 50_000, Deadline: guard.FromNow(5 * time.Minute)}
	if err := run(context.Background(), os.Stdout, nil, guard.NewTracker(budget), *finish); err != nil {
		log.Fatal(err)
	}
}

// run takes what the CLI is started with, and says how the limits were kept.
func run(ctx context.Context, out io.Writer, opts *claude.Options, tracker *guard.Tracker, finish bool) error {
	answer, err := summarise(ctx, opts, tracker, finish)
	switch {
	case errors.Is(err, guard.ErrDeadlineExceeded):
		fmt.Fprintln(out, "Task took too long")
	case errors.Is(err, guard.ErrBudgetExhausted):
		fmt.Fprintln(out, "Used too many tokens")
	case err != nil:
		return err
	}
	if answer != "" {
		fmt.Fprintln(out, answer)
	}
	if left := tracker.Remaining().Tokens; left != nil { // it is nil without a limit
		fmt.Fprintf(out, "Tokens remaining: %d\n", *left)
	}
	return nil
}

// summarise has the agent work within the limits. If one of them is reached that is the error; there may
// be an answer all the same.
func summarise(ctx context.Context, opts *claude.Options, tracker *guard.Tracker, finish bool) (answer string, err error) {
	if err := tracker.Check(); err != nil {
		return "", err // it is not even begun
	}
	request, err := request(tracker)
	if err != nil {
		return "", err
	}
	runner, err := agent.NewRunner(claudecode.New(opts), nil)
	if err != nil {
		return "", err
	}
	ends := tracker.Context // at each of the limits
	if finish {
		ends = tracker.Budget().Deadline.Context
	}
	ctx, cancel := ends(ctx)
	defer cancel()
	for e, err := range runner.Run(ctx, request) {
		if err != nil {
			return "", err
		}
		switch what := e.Payload.(type) {
		case claudecode.Tokens: // after each model call
			tracker.RecordCumulative(e.RunID, guard.Usage{InputTokens: what.Input, OutputTokens: what.Output})
		case event.Done:
			tracker.RecordCumulative(e.RunID, guard.UsageOf(what.Usage))
			return finished(what, tracker)
		}
	}
	return "", errors.New("the run had no end")
}

func finished(done event.Done, tracker *guard.Tracker) (answer string, err error) {
	if done.Status == event.DoneSuccess {
		return done.Result, tracker.Check()
	}
	if err := tracker.Check(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("the run ended with %s: %s", done.Status, done.Result)
}

// request is what the agent shall do. Its host denies all tools once a limit is reached.
func request(tracker *guard.Tracker) (agent.Request, error) {
	p, err := template.Bind()
	if err != nil {
		return agent.Request{}, err
	}
	rendered, err := p.Render(nil)
	if err != nil {
		return agent.Request{}, err
	}
	rules, err := gate.New(gate.Limits(gate.LimitOptions{}), gate.AllowTools("Read"))
	if err != nil {
		return agent.Request{}, err
	}
	host := gate.NewEngine(rules, &gate.EngineOptions{Facts: guard.Facts(guard.FactsOptions{Tracker: tracker})})
	// PartialText also has the tokens told during the run.
	return agent.Request{Prompt: rendered.Text, Host: host, PartialText: true}, nil
}
