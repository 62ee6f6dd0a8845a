// SPDX-License-Identifier: Apache-2.0

// Command limits gives an agent five minutes and 50,000 tokens. When either is spent the agent is stopped in the middle of
// its turn. With -reserve its tools are denied a little earlier, so that it can still report how far it has come.
//
//	limits -reserve 5000 ~/src/shop
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/drover-agents/drover"
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
	kept := flag.Int64("reserve", 0, "tokens that are kept for the answer")
	flag.Parse()
	budget := guard.Budget{MaxTotalTokens: 50_000, Deadline: guard.FromNow(5 * time.Minute)}
	opts := &claude.Options{Dir: cmp.Or(flag.Arg(0), ".")}
	if err := run(context.Background(), os.Stdout, opts, guard.NewTracker(budget), *kept); err != nil {
		log.Fatal(err)
	}
}

// run takes the options of the CLI; Dir is the folder. It prints how the limits were kept.
func run(ctx context.Context, out io.Writer, opts *claude.Options, tracker *guard.Tracker, kept int64) error {
	p, err := template.Bind()
	if err != nil {
		return err
	}
	resp, err := drover.Evaluate(ctx, claudecode.New(opts), p, &drover.Options{
		Tracker:  tracker,
		Settings: agent.Settings{Tools: []string{"Read", "Glob", "Grep"}},
		Policies: []gate.Policy{reserve(kept)},
	})
	switch {
	case errors.Is(err, guard.ErrDeadlineExceeded):
		fmt.Fprintln(out, "Task took too long")
	case errors.Is(err, guard.ErrBudgetExhausted):
		fmt.Fprintln(out, "Used too many tokens")
	case err != nil:
		return err
	default:
		fmt.Fprintln(out, resp.Text)
	}
	if left := tracker.Remaining().Tokens; left != nil { // it is nil without a limit
		fmt.Fprintf(out, "Tokens remaining: %d\n", *left)
	}
	return nil
}

// reserve denies every tool when no more than these tokens are left.
func reserve(tokens int64) gate.Policy {
	return gate.Custom("reserve", func(_ *gate.Call, f *gate.Facts) (event.Decision, bool) {
		if left := f.Remaining.Tokens; left == nil || *left > tokens {
			return event.Decision{}, false
		}
		return event.Decision{Reason: "The tokens that are left are for the answer. Give it now."}, true
	})
}
