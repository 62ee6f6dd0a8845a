// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
)

// leftUnanswered are requests meant for hosts of another kind; an error answer would end what they
// ask for on behalf of everybody.
var leftUnanswered = map[string]bool{
	"remote_tool_call": true, "remote_plumbing_call": true, "remote_tools_probe": true, "remote_tools_reannounce": true,
}

// prepare takes one request of the CLI and returns what answers it.
func (c *Client) prepare(ctx context.Context, r cliRequest) func() cliAnswer {
	if r.Subtype == "mcp_message" {
		return c.prepareMCP(ctx, r)
	}
	return func() cliAnswer { return c.serve(ctx, r) }
}

func (c *Client) serve(ctx context.Context, r cliRequest) cliAnswer {
	switch r.Subtype {
	case "hook_callback":
		return c.serveHook(ctx, r)
	case "can_use_tool":
		return c.servePermission(ctx, r)
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

func (c *Client) serveHook(ctx context.Context, r cliRequest) cliAnswer {
	var call struct {
		CallbackID string          `json:"callback_id"`
		Input      json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(r.Body, &call); err != nil {
		return cliAnswer{err: "hook_callback: " + err.Error()}
	}
	hook := c.hook(call.CallbackID)
	if hook == nil {
		return cliAnswer{err: "no hook has the id " + call.CallbackID}
	}
	return cliAnswer{response: hook.serve(ctx, c.log, call.Input)}
}

func (c *Client) servePermission(ctx context.Context, r cliRequest) cliAnswer {
	if c.opts.CanUseTool == nil {
		return cliAnswer{err: "no permission callback is set: the call is denied"}
	}
	return cliAnswer{response: servePermission(ctx, c.log, c.opts.CanUseTool, r.Body)}
}

// prepareMCP notes a call, or cancels one, in the order of the lines.
func (c *Client) prepareMCP(ctx context.Context, r cliRequest) func() cliAnswer {
	var call struct {
		Server  string          `json:"server_name"`
		Message json.RawMessage `json:"message"`
	}
	if err := json.Unmarshal(r.Body, &call); err != nil {
		return func() cliAnswer { return cliAnswer{err: "mcp_message: " + err.Error()} }
	}
	serve := c.mux.begin(ctx, call.Server, call.Message)
	return func() cliAnswer {
		reply := serve()
		response := make([]byte, 0, len(reply)+20)
		response = append(append(response, `{"mcp_response":`...), reply...)
		return cliAnswer{response: append(response, '}')}
	}
}
