// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drover-agents/drover/claude"
)

// A MessageServer is an MCP server in this process that exchanges single JSON-RPC messages with its clients. The
// type InProcess of tool/mcp makes one of a server of the official SDK.
type MessageServer interface {
	// Open begins a session: handle answers a message of the client, send gets those of the server.
	Open(send func(ctx context.Context, msg json.RawMessage) error) (handle func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error), close func())
	// Manifest returns the results of initialize and tools/list, or nil if the CLI has to ask for them.
	Manifest() (initialize, tools json.RawMessage, err error)
}

// MountOptions configures [MountMCP]. Nil and the zero value are ready to use.
type MountOptions struct {
	// Timeout bounds each call. Zero leaves the CLI's default; otherwise at least one second.
	Timeout time.Duration
	// Tools gives permissions for single tools.
	Tools []claude.MCPToolPolicy
	// Manifest asks the server for its tools before the CLI starts, to skip the handshake. Zero leaves that to the CLI.
	Manifest bool
}

// MountMCP makes a claude.Options.MCPServers entry of an MCP server in this process, which may be mounted several times.
func MountMCP(server MessageServer, opts *MountOptions) *claude.MCPInProcess {
	o := orZero(opts)
	entry := &claude.MCPInProcess{Timeout: o.Timeout, Tools: o.Tools}
	entry.Session = func(send func(context.Context, json.RawMessage) error) claude.MCPSession {
		handle, end := server.Open(send)
		return claude.MCPSession{Handle: handle, Close: end}
	}
	if o.Manifest {
		entry.Manifest = func() (*claude.MCPManifest, error) {
			initialize, tools, err := server.Manifest()
			if err != nil || initialize == nil {
				return nil, err
			}
			return &claude.MCPManifest{InitializeResult: initialize, ToolsListResult: tools}, nil
		}
	}
	return entry
}
