// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-agents/drover/advice"
)

// Each method in the control files sends one request to the running CLI. All of them are safe for concurrent use, end with
// their context, and fail with a [*ControlError] when the CLI refuses; a CLI too old for a request refuses it as
// unsupported. Results with a Raw field keep the CLI's whole answer there.

// controlRequest asks the CLI and decodes its answer. An absent answer, as older CLIs give to some requests, is the zero T.
func controlRequest[T any](ctx context.Context, c *Client, subtype string, fields any) (T, error) {
	var answer T
	raw, err := c.Request(ctx, subtype, fields)
	if err != nil || len(raw) == 0 {
		return answer, err
	}
	if err := readAnswer(subtype, raw, &answer); err != nil {
		return answer, err
	}
	if k, ok := any(&answer).(interface{ keepRaw(json.RawMessage) }); ok {
		k.keepRaw(raw)
	}
	return answer, nil
}

// controlField is controlRequest for an answer of which one field matters.
func controlField[T any](ctx context.Context, c *Client, subtype string, fields any, name string) (T, error) {
	answer, err := controlRequest[map[string]json.RawMessage](ctx, c, subtype, fields)
	var value T
	if raw, ok := answer[name]; ok && err == nil {
		err = readAnswer(subtype, raw, &value)
	}
	return value, err
}

func readAnswer(subtype string, raw json.RawMessage, answer any) error {
	if err := json.Unmarshal(raw, answer); err != nil {
		return advice.Wrap(fmt.Errorf("claude: the answer to %s has an unknown form: %w", subtype, err),
			"use Client.Request and read it yourself")
	}
	return nil
}

// command sends a request that has no answer but success or failure.
func (c *Client) command(ctx context.Context, subtype string, fields any) error {
	_, err := c.Request(ctx, subtype, fields)
	return err
}

type controlFields map[string]any

func withField[V comparable](f controlFields, name string, value V) controlFields {
	var zero V
	if value != zero {
		f[name] = value
	}
	return f
}

// An InterruptReceipt is the CLI's answer to an interrupt. Both lists are nil from a CLI that does
// not report them, and empty from one that had nothing to report.
type InterruptReceipt struct {
	// StillQueued are the uuids of the messages that will run after the interrupted one.
	StillQueued []string `json:"still_queued"`
	// Cancelled are the uuids of the queued messages that were thrown away.
	Cancelled []string `json:"cancelled"`
}

func (c *Client) requestInterrupt(ctx context.Context, cancelQueued bool) (InterruptReceipt, error) {
	return controlRequest[InterruptReceipt](ctx, c, "interrupt", withField(controlFields{}, "cancel_queued", cancelQueued))
}

// SetPermissionMode changes the permission mode. The CLI refuses "bypassPermissions" unless it was
// launched with it or with permission to switch to it.
func (c *Client) SetPermissionMode(ctx context.Context, mode PermissionMode) error {
	return c.command(ctx, "set_permission_mode", controlFields{"mode": mode})
}

// SetModel changes the model from the next request on and returns the CLI's full name of it, or "" from an older CLI. The
// empty model means the default one. A name that does not exist may be accepted and fail later.
func (c *Client) SetModel(ctx context.Context, model string) (string, error) {
	return controlField[string](ctx, c, "set_model", withField(controlFields{}, "model", model), "model")
}

// SetMaxThinkingTokens limits thinking; nil lifts the limit. Display is "" or a form in which
// thinking is shown ("summarized", "omitted"). Models with adaptive thinking may ignore it.
func (c *Client) SetMaxThinkingTokens(ctx context.Context, tokens *int, display string) error {
	return c.command(ctx, "set_max_thinking_tokens", withField(controlFields{"max_thinking_tokens": tokens}, "thinking_display", display))
}

// RenameSession gives the session a title.
func (c *Client) RenameSession(ctx context.Context, title string) error {
	return c.command(ctx, "rename_session", controlFields{"title": title})
}

// CancelMessage takes a message that is still queued out of the queue, by the uuid that it was
// sent with. It returns false if the message was not waiting any more.
func (c *Client) CancelMessage(ctx context.Context, uuid string) (bool, error) {
	return controlField[bool](ctx, c, "cancel_async_message", controlFields{"message_uuid": uuid}, "cancelled")
}

// SetHasSubscribers sets whether the session has viewers.
func (c *Client) SetHasSubscribers(ctx context.Context, has bool) error {
	return c.command(ctx, "set_has_subscribers", controlFields{"has_subscribers": has})
}

// StopTask stops a background task. The CLI does not report whether the id was known.
func (c *Client) StopTask(ctx context.Context, taskID string) error {
	return c.command(ctx, "stop_task", controlFields{"task_id": taskID})
}

// BackgroundTasks sends running foreground work to the background: that of one tool call, or all
// of it if toolUseID is empty. It reports whether something was sent.
func (c *Client) BackgroundTasks(ctx context.Context, toolUseID string) (bool, error) {
	sent, err := controlField[*bool](ctx, c, "background_tasks", withField(controlFields{}, "tool_use_id", toolUseID), "backgrounded")
	return err == nil && (sent == nil || *sent), err
}

// A TaskOutput is what a background task has written so far.
type TaskOutput struct {
	Output     string `json:"output"`
	TotalBytes int64  `json:"total_bytes"`
	Truncated  bool   `json:"truncated"`
}

// TaskOutput returns the output of a background shell or monitor.
func (c *Client) TaskOutput(ctx context.Context, taskID string) (TaskOutput, error) {
	return controlRequest[TaskOutput](ctx, c, "get_task_output", controlFields{"task_id": taskID})
}

// BinaryVersion is the version of the running CLI.
type BinaryVersion struct {
	Version   string `json:"version"`
	BuildTime string `json:"buildTime"`
}

// BinaryVersion asks for the version of the running CLI.
func (c *Client) BinaryVersion(ctx context.Context) (BinaryVersion, error) {
	return controlRequest[BinaryVersion](ctx, c, "get_binary_version", nil)
}

// Models lists the models that the account can use.
func (c *Client) Models(ctx context.Context) ([]ModelInfo, error) {
	return controlField[[]ModelInfo](ctx, c, "list_models", nil, "models")
}

func milliseconds(t time.Time) int64 { return t.UnixMilli() }
