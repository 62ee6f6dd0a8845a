// SPDX-License-Identifier: Apache-2.0

// Command scripted runs an evaluation without a key and without a network: the real CLI works in a cell, its tools run, and a
// script says what the model answers. A program can be tried, shown or developed that way; it is not a test.
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
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/prompt"
)

// Size is the answer.
type Size struct {
	Files int    `json:"files" minimum:"0"`
	Note  string `json:"note"`
}

var template = prompt.Must[Size]("demo", "size", prompt.Markdown("task", "Task", "Count the files of this folder."))

func main() {
	if err := run(context.Background(), os.Stdout, nil); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts *claude.Options) error {
	model, err := script.Start(script.New(
		script.Call("Bash", script.Input{"command": "ls | wc -l", "description": "Count the files"}),
		script.Structured(script.Input{"files": 2, "note": "written by a script"}),
	))
	if err != nil {
		return err
	}
	defer func() { _ = model.Close() }()
	adapter, err := claudecode.New(opts).Scripted(model.URL())
	if err != nil {
		return err
	}
	p, err := template.Bind()
	if err != nil {
		return err
	}
	resp, err := drover.Evaluate(ctx, adapter, p, nil)
	if err != nil {
		return err
	}
	counted, _, _ := model.ToolResult("Bash") // as the model got it
	fmt.Fprintf(out, "%d files, %s; the tool counted %s\n", resp.Output.Files, resp.Output.Note, counted)
	return nil
}
