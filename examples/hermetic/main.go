// SPDX-License-Identifier: Apache-2.0

// Command hermetic has an agent look at a folder with nothing else of the machine: a home of its own, no host that tools
// could reach, and a key that is named here and that the agent never sees. With -api tools may reach Anthropic's API.
//
//	hermetic -api ~/src/shop
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
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

var template = prompt.Must[prompt.Text]("hermetic", "purpose",
	prompt.Markdown("task", "Task", "Say in one sentence what the code in this folder is for."))

func main() {
	api := flag.Bool("api", false, "let tools reach Anthropic's API")
	flag.Parse()
	network := isolation.NoNetwork()
	if *api {
		network = claudecell.APIOnly()
	}
	opts := &claude.Options{Dir: cmp.Or(flag.Arg(0), ".")}
	if err := run(context.Background(), os.Stdout, opts, os.Getenv("ANTHROPIC_API_KEY"), network); err != nil {
		log.Fatal(err)
	}
}

// run takes what the CLI is started with, what pays for it, and what its tools may reach.
func run(ctx context.Context, out io.Writer, opts *claude.Options, key string, network *isolation.NetworkPolicy) error {
	in, err := claudecell.WithAPIKey(key, isolation.Isolation{
		Network: network,
		Sandbox: &isolation.Sandbox{}, // which is on
	})
	if err != nil {
		return err
	}
	adapter, err := claudecode.FromConfig(claudecode.Config{Isolation: in, Base: opts})
	if err != nil {
		return err
	}
	p, err := template.Bind()
	if err != nil {
		return err
	}
	s := session.New(nil)
	resp, err := drover.Evaluate(ctx, adapter, p, &drover.Options{Session: s})
	if err != nil {
		return err
	}
	protection, _ := session.Query[isolation.Protection](s).Latest()
	for _, held := range protection.Enforced {
		fmt.Fprintln(out, "-", held)
	}
	fmt.Fprintln(out, resp.Text)
	return nil
}
