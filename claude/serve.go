// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// leftUnanswered are requests for hosts of another kind. An error answer would end them for those hosts too.
var leftUnanswered = map[string]bool{
	"remote_tool_call": true, "remote_plumbing_call": true, "remote_tools_probe": true, "remote_tools_reannounce": true,
}

// prepare takes one request of the CLI, in the order of the lines, and returns its service.
func (c *Client) prepare(ctx context.Context, r cliRequest) service {
	switch r.Subtype {
	case "hook_callback":
		return c.prepareHook(ctx, r)
	case "can_use_tool":
		return service{
			run:  func() cliAnswer { return cliAnswer{response: servePermission(ctx, c.log, c.opts.CanUseTool, r.Body)} },
			safe: failedWith(permissionFailed), // which the CLI takes for a denial
		}
	case "mcp_message":
		return c.prepareMCP(ctx, r)
	}
	return service{
		run:  func() cliAnswer { return c.serve(ctx, r) },
		safe: failedWith("the callback did not return"),
	}
}

func failedWith(text string) func() cliAnswer {
	return func() cliAnswer { return cliAnswer{err: text} }
}

func (c *Client) serve(ctx context.Context, r cliRequest) cliAnswer {
	switch r.Subtype {
	case "elicitation":
		return cliAnswer{response: serveElicitation(ctx, c.log, c.opts.OnElicitation, r.Body)}
	case "request_user_dialog":
		response, ok := serveDialog(ctx, c.log, c.opts.OnUserDialog, c.opts.DialogKinds, r.Body)
		return cliAnswer{response: response, silent: !ok}
	}
	if leftUnanswered[r.Subtype] {
		return cliAnswer{silent: true}
	}
	return cliAnswer{err: "unsupported control request: " + r.Subtype, code: "unsupported_request"}
}

// prepareHook finds the hook in the order of the lines: [Client.SetHooks] forgets the old hooks when the
// CLI has accepted the new ones, and calls of old hooks precede that in the stream.
func (c *Client) prepareHook(ctx context.Context, r cliRequest) service {
	var call struct {
		CallbackID string          `json:"callback_id"`
		Input      json.RawMessage `json:"input"`
	}
	err := decodeObject(r.Body, &call)
	hook := c.hook(call.CallbackID)
	if hook == nil {
		hook = unknownHook(call.CallbackID, call.Input, err)
	}
	return service{
		run:  func() cliAnswer { return cliAnswer{response: hook.serve(ctx, c.log, call.Input)} },
		safe: func() cliAnswer { return cliAnswer{response: hook.safeAnswer()} },
	}
}

// unknownHook gives the call of an unknown hook the safe answer of its event: the CLI takes an error for no decision.
func unknownHook(id string, input json.RawMessage, err error) *Hook {
	var head struct {
		Event HookEvent `json:"hook_event_name"`
	}
	if json.Unmarshal(input, &head) != nil || head.Event == "" {
		head.Event = HookPreToolUse
	}
	return &Hook{Event: head.Event, Func: func(context.Context, HookInput) (HookOutput, error) {
		return nil, errors.Join(fmt.Errorf("no hook has the id %q", id), err)
	}}
}

// prepareMCP notes a call, or cancels one, in the order of the lines.
func (c *Client) prepareMCP(ctx context.Context, r cliRequest) service {
	var call struct {
		Server  string          `json:"server_name"`
		Message json.RawMessage `json:"message"`
	}
	if err := decodeObject(r.Body, &call); err != nil {
		return service{run: failedWith("mcp_message: " + err.Error()), safe: failedWith("mcp_message")}
	}
	serving := c.mux.begin(ctx, call.Server, call.Message)
	return service{
		run: func() cliAnswer {
			reply := serving.run()
			response := make([]byte, 0, len(reply)+20)
			response = append(append(response, `{"mcp_response":`...), reply...)
			return cliAnswer{response: append(response, '}')}
		},
		safe: failedWith(toolNotReturned),
		sent: serving.answered,
	}
}
