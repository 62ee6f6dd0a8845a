// SPDX-License-Identifier: Apache-2.0

// Droverclient is Drover as a client of the benchmark: typed, with a look at the text of every
// message, or with the argument "lazy", where only the type of each line is looked at.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/drover-agents/drover/bench/internal/rig"
	"github.com/drover-agents/drover/claude"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "lazy" {
		rig.Main(conversation(lazy))
		return
	}
	rig.Main(conversation(typed))
}

func conversation(consume func(*claude.Client, *rig.Meter) error) rig.Client {
	return func(ctx context.Context, job rig.Job, m *rig.Meter) error {
		opts, err := options(job)
		if err != nil {
			return err
		}
		c, err := claude.Connect(ctx, opts)
		if err != nil {
			return m.Ended(err)
		}
		defer func() { _ = c.Close() }()
		m.Start()
		if err := c.Send(ctx, claude.Text("go")); err != nil {
			return m.Ended(err)
		}
		return consume(c, m)
	}
}

func typed(c *claude.Client, m *rig.Meter) error {
	for msg, err := range c.Messages() {
		if err != nil {
			return m.Ended(err)
		}
		switch msg := msg.(type) {
		case *claude.AssistantMessage:
			m.Message(blocks(msg.Content))
		case *claude.UserMessage:
			m.Message(blocks(msg.Content))
		case *claude.StreamEvent:
			text, _ := msg.TextDelta()
			m.Message(len(text))
		case *claude.ResultMessage:
			m.Stop()
			return nil
		}
	}
	return m.Ended(nil)
}

func blocks(content []claude.Block) int {
	n := 0
	for _, b := range content {
		switch b := b.(type) {
		case *claude.TextBlock:
			n += len(b.Text)
		case *claude.ToolResultBlock:
			n += blocks(b.Content)
		}
	}
	return n
}

func lazy(c *claude.Client, m *rig.Meter) error {
	for line, err := range c.Lines() {
		if err != nil {
			return m.Ended(err)
		}
		switch line.Type() {
		case "assistant", "user", "stream_event":
			m.Message(0)
		case "result":
			m.Stop()
			return nil
		}
	}
	return m.Ended(nil)
}

func options(job rig.Job) (*claude.Options, error) {
	o := &claude.Options{CLIPath: job.CLI, Env: claude.ExactEnv(job.Env), PartialMessages: true}
	switch job.Scenario {
	case rig.Hooks, rig.Hooks16:
		o.Hooks = []claude.Hook{claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
			return nil, nil
		})}
	case rig.Death:
		o.Hooks = []claude.Hook{claude.On("", func(ctx context.Context, _ *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
			ctx, cancel := context.WithTimeout(ctx, rig.DeathCap)
			defer cancel()
			<-ctx.Done()
			return nil, nil
		})}
	case rig.Permissions:
		o.CanUseTool = func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
			return claude.Allow{}, nil
		}
	case rig.MCP:
		server, err := addServer()
		if err != nil {
			return nil, err
		}
		o.MCPServers = map[string]claude.MCPServer{"bench": server}
	}
	return o, nil
}

type addArgs struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

func addServer() (claude.MCPServer, error) {
	add, err := claude.NewTool("add", "Adds two numbers", func(_ context.Context, in addArgs) (claude.ToolResult, error) {
		return claude.TextResult(fmt.Sprintf("the sum is %v", in.A+in.B)), nil
	})
	if err != nil {
		return nil, err
	}
	server, err := claude.NewToolServer("bench", "1.0.0", nil, add)
	if err != nil {
		return nil, err
	}
	return server.Server(), nil
}
