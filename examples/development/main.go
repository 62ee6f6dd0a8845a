// SPDX-License-Identifier: Apache-2.0

// Command development has an agent with NO WALLS: its tools reach every host and every file of the user. It is
// for trying things out on a machine that has nothing to lose, and does nothing unless it is told so.
//
//	development -no-walls ~/scratch
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
	noWalls := flag.Bool("no-walls", false, "run the agent with NO WALLS")
	flag.Parse()
	if !*noWalls {
		log.Fatal("the agent would have NO WALLS: say -no-walls if that is what you want")
	}
	opts := &claude.Options{Dir: cmp.Or(flag.Arg(0), ".")}
	if err := run(context.Background(), os.Stdout, opts); err != nil {
		log.Fatal(err)
	}
}

// run takes what the CLI is started with.
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
		if walls, ok := e.Payload.(isolation.Protection); ok && walls.Level == isolation.LevelHost {
			fmt.Fprintln(out, "NO WALLS")
		}
	}
	resp, err := answer.Response()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, resp.Text)
	return nil
}
