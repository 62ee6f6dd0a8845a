// SPDX-License-Identifier: Apache-2.0

// Command review has an agent review a file and fix it. The agent may edit files without a question;
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

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// CodeReview is the answer.
type CodeReview struct {
	Verdict string   `json:"verdict" enum:"good,fixed,bad"`
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
	if err := run(context.Background(), os.Stdout, &claude.Options{Dir: "."}, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts *claude.Options, file string) error {
	opts.PermissionMode = claude.ModeAcceptEdits
	p, err := prompt.NewPrompt[CodeReview]("review", "code",
		prompt.Markdown("task", "Task", "Review the code in $file_path"),
	)
	if err != nil {
		return err
	}
	if p, err = p.Bind(Args{FilePath: file}); err != nil {
		return err
	}
	resp, err := drover.Evaluate(ctx, claudecode.New(opts), p, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d issues\n", resp.Output.Verdict, len(resp.Output.Issues))
	for call := range session.Query[session.ToolInvoked](resp.Session).All() {
		fmt.Fprintf(out, "Tool used: %s\n", call.Name)
	}
	return nil
}
