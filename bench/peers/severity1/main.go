// SPDX-License-Identifier: Apache-2.0

// Severity1 is the Go port severity1/claude-agent-sdk-go as a client of the benchmark.
package main

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/severity1/claude-agent-sdk-go"

	"github.com/drover-agents/drover/bench/internal/rig"
)

func main() { rig.Main(converse) }

func converse(ctx context.Context, job rig.Job, m *rig.Meter) error {
	client := sdk.NewClient(options(job)...)
	if err := client.Connect(ctx); err != nil {
		return m.Ended(err)
	}
	defer func() { _ = client.Disconnect() }()
	m.Start()
	if err := client.Query(ctx, "go"); err != nil {
		return m.Ended(err)
	}
	messages := client.ReceiveResponse(ctx)
	for {
		msg, err := messages.Next(ctx)
		switch {
		case errors.Is(err, sdk.ErrNoMoreMessages):
			return m.Ended(nil)
		case err != nil:
			return m.Ended(err)
		}
		if take(msg, m) {
			return nil
		}
	}
}

func options(job rig.Job) []sdk.Option {
	opts := []sdk.Option{
		sdk.WithCLIPath(job.CLI),
		sdk.WithEnv(job.Env),
		sdk.WithIncludePartialMessages(true),
	}
	switch job.Scenario {
	case rig.Big:
		opts = append(opts, sdk.WithMaxBufferSize(16<<20)) // the default refuses lines above 1 MB
	case rig.Hooks, rig.Hooks16:
		opts = append(opts, sdk.WithPreToolUseHook("", func(context.Context, any, *string, sdk.HookContext) (sdk.HookJSONOutput, error) {
			return sdk.HookJSONOutput{}, nil
		}))
	case rig.Death:
		opts = append(opts, sdk.WithPreToolUseHook("", func(ctx context.Context, _ any, _ *string, _ sdk.HookContext) (sdk.HookJSONOutput, error) {
			ctx, cancel := context.WithTimeout(ctx, rig.DeathCap)
			defer cancel()
			<-ctx.Done()
			return sdk.HookJSONOutput{}, nil
		}))
	case rig.Permissions:
		opts = append(opts, sdk.WithCanUseTool(func(context.Context, string, map[string]any, sdk.ToolPermissionContext) (sdk.PermissionResult, error) {
			return sdk.NewPermissionResultAllow(), nil
		}))
	case rig.MCP:
		opts = append(opts, sdk.WithSdkMcpServer("bench", sdk.CreateSDKMcpServer("bench", "1.0.0", addTool())))
	}
	return opts
}

func addTool() *sdk.McpTool {
	number := map[string]any{"type": "number"}
	schema := map[string]any{"type": "object", "properties": map[string]any{"a": number, "b": number}, "required": []string{"a", "b"}}
	return sdk.NewTool("add", "Adds two numbers", schema, func(_ context.Context, args map[string]any) (*sdk.McpToolResult, error) {
		a, _ := args["a"].(float64)
		b, _ := args["b"].(float64)
		return &sdk.McpToolResult{Content: []sdk.McpContent{{Type: "text", Text: fmt.Sprintf("the sum is %v", a+b)}}}, nil
	})
}

// take reports whether msg is the result.
func take(msg sdk.Message, m *rig.Meter) bool {
	switch msg := msg.(type) {
	case *sdk.AssistantMessage:
		m.Message(blocks(msg.Content))
	case *sdk.UserMessage:
		content, _ := msg.Content.([]sdk.ContentBlock)
		m.Message(blocks(content))
	case *sdk.StreamEvent:
		delta, _ := msg.Event["delta"].(map[string]any)
		text, _ := delta["text"].(string)
		m.Message(len(text))
	case *sdk.ResultMessage:
		m.Stop()
		return true
	}
	return false
}

func blocks(content []sdk.ContentBlock) int {
	n := 0
	for _, b := range content {
		switch b := b.(type) {
		case *sdk.TextBlock:
			n += len(b.Text)
		case *sdk.ToolResultBlock:
			text, _ := b.Content.(string)
			n += len(text)
		}
	}
	return n
}
