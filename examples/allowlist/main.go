// SPDX-License-Identifier: Apache-2.0

// Command allowlist has an agent read documentation on the hosts that are named. Its tools reach these and
// servers on this machine's loopback, and no other; each connection is shown.
//
//	allowlist -allow docs.python.org,go.dev "Which version of the library is the newest?"
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
)

// Args fill the placeholders of the prompt.
type Args struct {
	Question string `json:"question"`
}

var template = prompt.Must[prompt.Text]("allowlist", "question",
	prompt.Markdown("task", "Task", "Answer from the documentation: $question"))

func main() {
	domains := flag.String("allow", "docs.python.org,go.dev", "hosts that tools may reach, with commas between")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, nil, flag.Arg(0), strings.Split(*domains, ",")...); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts *claude.Options, question string, domains ...string) error {
	network := isolation.WithDomains(domains...)
	network.AllowLocalhost = true // for servers of your own
	adapter, err := claudecode.FromConfig(claudecode.Config{
		Isolation: &isolation.Isolation{
			Network: network,
			Sandbox: &isolation.Sandbox{ExcludedCommands: []string{"docker"}}, // where the CLI's own sandbox isolates it; no command leaves a cell
		},
		Base: opts,
	})
	if err != nil {
		return err
	}
	p, err := template.Bind(Args{question})
	if err != nil {
		return err
	}
	answer := drover.Stream(ctx, adapter, p, nil)
	for e, err := range answer.Events() {
		if err != nil {
			return err
		}
		if c, ok := e.Payload.(proxy.Connection); ok {
			fmt.Fprintf(out, "%s: %s\n", c.Host, c.Verdict)
		}
	}
	resp, err := answer.Response()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, resp.Text)
	return nil
}
