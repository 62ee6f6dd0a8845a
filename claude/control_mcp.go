// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"time"
)

// An MCPServerStatus is the state of an MCP server as the CLI sees it.
type MCPServerStatus struct {
	Name string `json:"name"`
	// Status is "connected", "failed", "needs-auth", "pending" or "disabled".
	Status     string         `json:"status"`
	ServerInfo *MCPServerInfo `json:"serverInfo"`
	Error      string         `json:"error"`
	// Config is the server's configuration, nil where the CLI keeps it back.
	Config    json.RawMessage `json:"config"`
	Transport string          `json:"transport"`
	Scope     string          `json:"scope"`
	// Source is where the server comes from: "sdk", "plugin", "user", "project", ... Base trust on it, not on the name.
	Source string          `json:"source"`
	Tools  []MCPToolStatus `json:"tools"`
}

// MCPServerInfo is how a server named itself.
type MCPServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// An MCPToolStatus is a tool of a connected server.
type MCPToolStatus struct {
	Name        string                     `json:"name"`
	Description string                     `json:"description"`
	Annotations MCPToolHints               `json:"annotations"`
	Meta        map[string]json.RawMessage `json:"_meta"`
}

// MCPToolHints are a tool's annotations; nil means that the server sent none.
type MCPToolHints struct {
	ReadOnly    *bool `json:"readOnly"`
	Destructive *bool `json:"destructive"`
	OpenWorld   *bool `json:"openWorld"`
}

// MCPStatus lists the MCP servers of the session.
func (c *Client) MCPStatus(ctx context.Context) ([]MCPServerStatus, error) {
	return controlField[[]MCPServerStatus](ctx, c, "mcp_status", nil, "mcpServers")
}

// ReconnectMCP connects a server again.
func (c *Client) ReconnectMCP(ctx context.Context, server string) error {
	return c.command(ctx, "mcp_reconnect", controlFields{"serverName": server})
}

// ToggleMCP switches a server on or off.
func (c *Client) ToggleMCP(ctx context.Context, server string, enabled bool) error {
	return c.command(ctx, "mcp_toggle", controlFields{"serverName": server, "enabled": enabled})
}

// An MCPServersChange is the outcome of a new set of servers.
type MCPServersChange struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	// Errors are by server name.
	Errors map[string]string `json:"errors"`
}

// requestSetMCPServers replaces all servers that came from the host, in-process ones included.
func (c *Client) requestSetMCPServers(ctx context.Context, servers any) (MCPServersChange, error) {
	return controlRequest[MCPServersChange](ctx, c, "mcp_set_servers", controlFields{"servers": servers})
}

// requestMCPMessage hands the CLI a JSON-RPC message of an in-process server.
func (c *Client) requestMCPMessage(ctx context.Context, server string, message json.RawMessage) error {
	return c.command(ctx, "mcp_message", controlFields{"server_name": server, "message": message})
}

// An MCPToolCall is a call of an MCP tool outside the conversation. Only Tool is required.
type MCPToolCall struct {
	// Tool is the full name, "mcp__server__tool". In-process servers cannot be called this way.
	Tool string
	// Arguments marshals to the tool's input. Nil sends none.
	Arguments any
	// ExpiresAt is the time after which the CLI must not start the call. Zero means never.
	ExpiresAt time.Time
	// Timeout limits the call. Zero means the CLI's default.
	Timeout           time.Duration
	ResultNotForModel bool
	CheckPermissions  bool
	InputFiles        any
	OutputFiles       any
}

// CallMCPTool calls a tool and returns its result as the CLI gives it.
func (c *Client) CallMCPTool(ctx context.Context, call MCPToolCall) (json.RawMessage, error) {
	f := controlFields{"tool": call.Tool}
	for name, value := range map[string]any{"arguments": call.Arguments, "input_files": call.InputFiles, "output_files": call.OutputFiles} {
		if value != nil {
			f[name] = value
		}
	}
	if !call.ExpiresAt.IsZero() {
		f["expires_at"] = milliseconds(call.ExpiresAt)
	}
	f = withField(f, "timeout_ms", call.Timeout.Milliseconds())
	f = withField(withField(f, "result_not_for_model", call.ResultNotForModel), "check_permissions", call.CheckPermissions)
	return c.Request(ctx, "mcp_call", f)
}

// MCPResource is one part of a resource: Text or Blob (base64).
type MCPResource struct {
	URI      string                     `json:"uri"`
	MimeType string                     `json:"mimeType"`
	Text     *string                    `json:"text"`
	Blob     *string                    `json:"blob"`
	Meta     map[string]json.RawMessage `json:"_meta"`
}

// ReadMCPResource reads a resource of a server. The CLI allows "ui://" addresses only.
func (c *Client) ReadMCPResource(ctx context.Context, server, uri string) ([]MCPResource, error) {
	return controlField[[]MCPResource](ctx, c, "mcp_read_resource", controlFields{"serverName": server, "uri": uri}, "contents")
}

// SetMCPPermissionMode sets [ModeDefault] or [ModeAuto] for the calls to one server, in place of the session's mode; the
// empty mode removes the setting. The string returned is a warning, for example that the server is not known yet.
func (c *Client) SetMCPPermissionMode(ctx context.Context, server string, mode PermissionMode) (string, error) {
	f := controlFields{"serverName": server, "mode": nil}
	return controlField[string](ctx, c, "set_mcp_permission_mode_override", withField(f, "mode", mode), "warning")
}
