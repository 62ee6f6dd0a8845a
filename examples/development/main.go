// SPDX-License-Identifier: Apache-2.0

// Command development runs an agent with NO ISOLATION: its tools reach every host and every file of the user. It is
// for trying things out on disposable machines, and does nothing without the flag -no-isolation.
//
//	development -no-isolation ~/scratch
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
)

var template = prompt.Must[prompt.Text]("development", "tools",
	prompt.Markdown("task", "Task", "Say which compilers there are on this machine."))

func main() {
	noIsolation := flag.Bool("no-isolation", false, "run the agent with NO ISOLATION")
	flag.Parse()
	if !*noIsolation {
		log.Fatal("the agent would have NO ISOLATION: set -no-isolation to accept that")
	}
	opts := &claude.Options{Dir: cmp.Or(flag.Arg(0), ".")}
	if err := run(context.Background(), os.Stdout, opts); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts *claude.Options) error {
	p, err := template.Bind()
	if err != nil {
		return err
	}
	adapter := claudecode.New(opts).In(isolation.Development())
	answer := drover.Stream(ctx, adapter, p, nil)
	for e, err := range answer.Events() {
		if err != nil {
			return err
		}
		if protection, ok := e.Payload.(isolation.Protection); ok && protection.Level == isolation.LevelHost {
			fmt.Fprintln(out, "NO ISOLATION")
		}
	}
	resp, err := answer.Response()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, resp.Text)
	return nil
}
