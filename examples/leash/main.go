// SPDX-License-Identifier: Apache-2.0

// Command leash gives the agent a tool of its own and takes the shell away. The agent runs in a cell; the
// tool runs in this program.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

func main() {
	if err := run(context.Background(), os.Stdout, &claude.Options{}); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts *claude.Options) error {
	type input struct {
		City string `json:"city" doc:"name of the city"`
	}
	weather, err := claude.NewTool("weather", "The weather in a city.",
		func(_ context.Context, in input) (claude.ToolResult, error) {
			return claude.TextResult("It rains in " + in.City + "."), nil
		})
	if err != nil {
		return err
	}
	server, err := claude.NewToolServer("town", "1.0.0", nil, weather)
	if err != nil {
		return err
	}
	opts.MCPServers = map[string]claude.MCPServer{"town": server.Server()}
	opts.Hooks = []claude.Hook{
		claude.On("Bash", func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
			return claude.DenyTool("No shell is available. Continue without this call."), nil
		}),
	}
	opts.AllowedTools = []string{"mcp__town__weather"}
	cell, err := claudecell.Open(ctx, nil, opts, isolation.OpenOptions{})
	if err != nil {
		return err
	}
	defer cell.Close()
	for m, err := range claude.Query(ctx, "What is the weather in Ulm?", opts) {
		if err != nil {
			return err
		}
		if text, ok := m.(*claude.AssistantMessage); ok {
			fmt.Fprintln(out, text.Text())
		}
	}
	return nil
}
