// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/drover-agents/drover/internal/plainjson"
)

// An ElicitationHandler answers questions that an MCP server puts to the user. The context ends
// when the CLI withdraws the question. An error or a panic declines.
type ElicitationHandler func(ctx context.Context, req *ElicitationRequest) (ElicitationAnswer, error)

// An ElicitationRequest is a question of an MCP server.
type ElicitationRequest struct {
	MCPServerName string `json:"mcp_server_name"`
	Message       string `json:"message"`
	// Mode is "form" or "url"; empty on older CLIs means "form".
	Mode          string `json:"mode"`
	URL           string `json:"url"`
	ElicitationID string `json:"elicitation_id"`
	// RequestedSchema is the JSON schema of the answer's content.
	RequestedSchema json.RawMessage `json:"requested_schema"`
	// PropertyOrder is the order in which the server listed the schema's properties.
	PropertyOrder []string        `json:"property_order"`
	Title         string          `json:"title"`
	DisplayName   string          `json:"display_name"`
	Description   string          `json:"description"`
	Raw           json.RawMessage `json:"-"`
}

// An ElicitationAction is what the user did with a question.
type ElicitationAction string

// The answers to an elicitation.
const (
	ElicitAccept  ElicitationAction = "accept"
	ElicitDecline ElicitationAction = "decline"
	ElicitCancel  ElicitationAction = "cancel"
)

// An ElicitationAnswer is the user's answer. The zero value declines.
type ElicitationAnswer struct {
	Action ElicitationAction `json:"action"`
	// Content goes with ElicitAccept and marshals to an object that fits the schema.
	Content any `json:"content,omitzero"`
}

// serveElicitation answers an elicitation, always with a JSON object; without a handler it declines. It never panics.
func serveElicitation(ctx context.Context, log *slog.Logger, fn ElicitationHandler, req json.RawMessage) json.RawMessage {
	declined := json.RawMessage(`{"action":"decline"}`)
	if fn == nil {
		return declined
	}
	return guarded(ctx, log, "elicitation handler", declined, func() (json.RawMessage, error) {
		asked := &ElicitationRequest{Raw: req}
		if err := decodeObject(req, asked); err != nil && !isFieldError(err) {
			return nil, err
		}
		answer, err := fn(ctx, asked)
		if err != nil {
			return nil, err
		}
		switch answer.Action {
		case ElicitAccept:
		case "", ElicitDecline:
			return declined, nil
		case ElicitCancel:
			answer.Content = nil
		default:
			return nil, fmt.Errorf("unknown action %q", answer.Action)
		}
		return plainjson.Marshal(answer)
	})
}

// guarded returns the result of fn, or fallback if fn fails or panics; both are logged under name.
func guarded(ctx context.Context, log *slog.Logger, name string, fallback json.RawMessage, fn func() (json.RawMessage, error)) (answer json.RawMessage) {
	defer func() {
		if p := recover(); p != nil {
			log.ErrorContext(ctx, name+" panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			answer = fallback
		}
	}()
	answer, err := fn()
	if err != nil {
		log.ErrorContext(ctx, name+" failed", "error", err)
		return fallback
	}
	return answer
}

// A DialogHandler answers dialogs that the CLI wants shown to the user. The context ends when the
// CLI withdraws the dialog. An error or a panic cancels it.
type DialogHandler func(ctx context.Context, req *DialogRequest) (DialogAnswer, error)

// A DialogRequest asks for a dialog of one of the declared kinds.
type DialogRequest struct {
	Kind      string          `json:"dialog_kind"`
	Payload   json.RawMessage `json:"payload"`
	ToolUseID string          `json:"tool_use_id"`
	Raw       json.RawMessage `json:"-"`
}

// A DialogAnswer is the outcome of a dialog.
type DialogAnswer struct {
	// Cancelled is set when the user left the dialog; Result is then not sent.
	Cancelled bool
	// Result marshals to what the kind of dialog asks for.
	Result any
}

type dialogWire struct {
	Behavior string `json:"behavior"`
	Result   any    `json:"result"`
}

// serveDialog answers a request_user_dialog request. Without a handler, or for a kind that was not declared, ok is false:
// such a request stays unanswered, because another client of the same session may show it.
func serveDialog(ctx context.Context, log *slog.Logger, fn DialogHandler, kinds []string, req json.RawMessage) (answer json.RawMessage, ok bool) {
	asked := &DialogRequest{Raw: req}
	err := decodeObject(req, asked)
	if fn == nil || err != nil || !slices.Contains(kinds, asked.Kind) {
		return nil, false
	}
	cancelled := json.RawMessage(`{"behavior":"cancelled"}`)
	return guarded(ctx, log, "dialog handler", cancelled, func() (json.RawMessage, error) {
		a, err := fn(ctx, asked)
		if err != nil || a.Cancelled {
			return cancelled, err
		}
		return plainjson.Marshal(dialogWire{"completed", a.Result})
	}), true
}
