// SPDX-License-Identifier: Apache-2.0

// Command bedrock has an agent work on Amazon Bedrock. Credentials are found by AWS's own rules and stay outside
// of the cell; with -aws the AWS files are looked for in another folder, as in a container.
//
//	CLAUDE_CODE_USE_BEDROCK=1 AWS_REGION=eu-west-1 bedrock -aws /mnt/aws ~/src/shop
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
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	_ "github.com/drover-agents/drover/gateway/bedrock" // AWS's part is in programs that want it
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
)

var template = prompt.Must[prompt.Text]("bedrock", "purpose",
	prompt.Markdown("task", "Task", "Say in one sentence what the code in this folder is for."))

func main() {
	files := flag.String("aws", "", "folder of the AWS files (default ~/.aws)")
	model := flag.String("model", "", "name at Anthropic or id at Bedrock")
	flag.Parse()
	opts := &claude.Options{Dir: cmp.Or(flag.Arg(0), ".")}
	if err := run(context.Background(), os.Stdout, opts, isolation.Host{}, *files, *model); err != nil {
		log.Fatal(err)
	}
}

// run takes what the CLI is started with, and the machine that has the credentials.
func run(ctx context.Context, out io.Writer, opts *claude.Options, host isolation.Host, files, model string) error {
	// &isolation.Isolation{Host: host} would do the same, and whatever else the host is set up for.
	in, err := claudecell.ForBedrock(files, isolation.Isolation{Host: host})
	if err != nil {
		return err
	}
	model = cmp.Or(model, claudecell.ModelFor(in))
	fmt.Fprintf(out, "%s, %s at Anthropic\n", model, claudecell.ToAnthropicModelName(model))
	adapter, err := claudecode.FromConfig(claudecode.Config{
		Isolation: in,
		Base:      opts,
	})
	if err != nil {
		return err
	}
	p, err := template.Bind()
	if err != nil {
		return err
	}
	resp, err := drover.Evaluate(ctx, adapter, p, &drover.Options{Settings: agent.Settings{Model: model}})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, resp.Text)
	return nil
}
