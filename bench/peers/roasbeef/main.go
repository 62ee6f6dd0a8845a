// SPDX-License-Identifier: Apache-2.0

// Roasbeef is the Go port roasbeef/claude-agent-sdk-go as a client of the benchmark.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/roasbeef/claude-agent-sdk-go"

	"github.com/drover-agents/drover/bench/internal/rig"
)

func main() { rig.Main(converse) }

func converse(ctx context.Context, job rig.Job, m *rig.Meter) error {
	client, err := sdk.NewClient(options(job)...)
	if err != nil {
		return m.Ended(err)
	}
	defer func() { _ = client.Close() }()
	stream, err := client.Stream(ctx)
	if err != nil {
		return m.Ended(err)
	}
	defer func() { _ = stream.Close() }()
	m.Start()
	if err := stream.Send(ctx, "go"); err != nil {
		return m.Ended(err)
	}
	for msg := range stream.Messages() {
		if take(msg, m) {
			return nil
		}
	}
	return m.Ended(nil)
}

func options(job rig.Job) []sdk.Option {
	opts := []sdk.Option{
		sdk.WithCLIPath(job.CLI),
		sdk.WithEnv(job.Env),
		sdk.WithIncludePartialMessages(true),
		sdk.WithSkillsDisabled(),
	}
	switch job.Scenario {
	case rig.Hooks, rig.Hooks16:
		opts = append(opts, hook(func(context.Context, sdk.HookInput) (sdk.HookResult, error) {
			return sdk.HookResult{Continue: true}, nil
		}))
	case rig.Death:
		opts = append(opts, hook(func(ctx context.Context, _ sdk.HookInput) (sdk.HookResult, error) {
			ctx, cancel := context.WithTimeout(ctx, rig.DeathCap)
			defer cancel()
			<-ctx.Done()
			return sdk.HookResult{Continue: true}, nil
		}))
	case rig.Permissions:
		opts = append(opts, sdk.WithCanUseTool(func(context.Context, sdk.ToolPermissionRequest) sdk.PermissionResult {
			return sdk.PermissionAllow{}
		}))
	case rig.MCP:
		opts = append(opts, sdk.WithMcpServer("bench", server()))
	}
	return opts
}

func hook(callback sdk.HookCallback) sdk.Option {
	return sdk.WithHooks(map[sdk.HookType][]sdk.HookConfig{
		sdk.HookTypePreToolUse: {{Type: sdk.HookTypePreToolUse, Matcher: "*", Callback: callback}},
	})
}

type addArgs struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

func server() *sdk.McpServer {
	return sdk.CreateMcpServer(sdk.McpServerOptions{Name: "bench", Tools: []sdk.ToolRegistrar{
		sdk.Tool("add", "Adds two numbers", func(_ context.Context, args addArgs) (sdk.ToolResult, error) {
			return sdk.TextResult(fmt.Sprintf("the sum is %v", args.A+args.B)), nil
		}),
	}})
}

// take reports whether msg is the result. The port keeps no content of tool results, and leaves
// partial messages to be decoded by the consumer.
func take(msg sdk.Message, m *rig.Meter) bool {
	switch msg := msg.(type) {
	case sdk.AssistantMessage:
		n := 0
		for _, b := range msg.Message.Content {
			if b.Type == "text" {
				n += len(b.Text)
			}
		}
		m.Message(n)
	case sdk.UserMessage:
		n := 0
		for _, b := range msg.Message.Content {
			n += len(b.Text)
		}
		m.Message(n)
	case sdk.PartialAssistantMessage:
		var event struct{ Delta struct{ Text string } }
		_ = json.Unmarshal(msg.Event, &event)
		m.Message(len(event.Delta.Text))
	case sdk.ResultMessage:
		m.Stop()
		return true
	}
	return false
}
