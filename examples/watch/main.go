// SPDX-License-Identifier: Apache-2.0

// Command watch shows what an agent does while it does it: its isolation level, its calls and their results, and
// the text as it is written. The cost comes last.
//
//	watch ~/src/shop
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
)

var template = prompt.Must[prompt.Text]("watch", "tour",
	prompt.Markdown("task", "Task", "Look around in this folder and say what is there."))

func main() {
	folder := "."
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	if err := run(context.Background(), os.Stdout, &claude.Options{Dir: folder}); err != nil {
		log.Fatal(err)
	}
}

// run takes what the CLI is started with; Dir is the folder.
func run(ctx context.Context, out io.Writer, opts *claude.Options) error {
	p, err := template.Bind()
	if err != nil {
		return err
	}
	tour := drover.Stream(ctx, claudecode.New(opts), p, &drover.Options{Settings: agent.Settings{PartialText: true}})
	for e, err := range tour.Events() {
		if err != nil {
			return err // that of tour.Response
		}
		show(out, e)
	}
	resp, err := tour.Response()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d model calls, %d tool calls, %d tokens\n", resp.Turns, resp.Stats.ToolCalls, resp.Usage.InputTokens()+resp.Usage.OutputTokens())
	return nil
}

func show(out io.Writer, e event.Event) {
	switch what := e.Payload.(type) {
	case isolation.Protection:
		fmt.Fprintf(out, "isolation: %s\n", what.Level)
	case event.ToolCall:
		fmt.Fprintf(out, "%s %s\n", what.Name, cmp.Or(what.Description, string(what.Input)))
	case event.ToolResult:
		fmt.Fprintf(out, "%s: %s\n", what.Name, what.Status)
	case event.TextDelta:
		fmt.Fprint(out, what.Delta)
	}
}
