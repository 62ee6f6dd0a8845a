// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"strconv"
)

// A toolCall is what a handler's context knows of its call.
type toolCall struct {
	toolUseID     string
	progressToken json.RawMessage
	send          func(context.Context, json.RawMessage) error // nil where no client is attached
}

type toolCallKey struct{}

// mcpContext carries both the cancellation and the call in one allocation: it is made for every call.
type mcpContext struct {
	context.Context
	call toolCall
}

func (c *mcpContext) Value(key any) any {
	if _, ok := key.(toolCallKey); ok {
		return &c.call
	}
	return c.Context.Value(key)
}

func callFrom(ctx context.Context) *toolCall {
	call, _ := ctx.Value(toolCallKey{}).(*toolCall)
	return call
}

// ToolUseIDFromContext returns the id of the tool use that an in-process tool is answering, or "".
// Messages, hooks and permission questions about the call carry the same id.
func ToolUseIDFromContext(ctx context.Context) string {
	if call := callFrom(ctx); call != nil {
		return call.toolUseID
	}
	return ""
}

// ReportProgress reports the progress of an in-process tool to the CLI. A total of zero means unknown; message may be empty.
// Outside of a tool call, and if the CLI did not ask for progress, it does nothing. It fails when the call is over.
func ReportProgress(ctx context.Context, progress, total float64, message string) error {
	call := callFrom(ctx)
	if call == nil || call.send == nil || len(call.progressToken) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...)
	b = append(b, call.progressToken...)
	b = strconv.AppendFloat(append(b, `,"progress":`...), progress, 'f', -1, 64)
	if total != 0 {
		b = strconv.AppendFloat(append(b, `,"total":`...), total, 'f', -1, 64)
	}
	if message != "" {
		b = appendJSONText(append(b, `,"message":`...), message)
	}
	return call.send(ctx, append(b, "}}"...))
}
