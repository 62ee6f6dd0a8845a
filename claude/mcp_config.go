// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// An MCPServer is one entry of Options.MCPServers: an [MCPStdio], [MCPSSE], [MCPHTTP] or [*MCPInProcess].
type MCPServer interface {
	// configJSON is the entry for --mcp-config or mcp_set_servers under the given name.
	configJSON(name string) (json.RawMessage, error)
	// validate returns the faults of the entry, before a process is started.
	validate() error
}

// MCPStdio is an MCP server that the CLI starts as a program and connects to by its standard streams.
type MCPStdio struct {
	Command string
	Args    []string
	// Env is added to the environment that the CLI gives its servers.
	Env map[string]string
	// Timeout bounds each call. Zero leaves the CLI's default; otherwise at least one second.
	Timeout time.Duration
	// AlwaysLoad sends the tools to the model from the start instead of behind tool search.
	AlwaysLoad bool
}

// MCPSSE is an MCP server reached over HTTP with server-sent events.
type MCPSSE struct {
	URL     string
	Headers map[string]string
	// Tools gives permissions for single tools.
	Tools []MCPToolPolicy
	// Timeout bounds each call. Zero leaves the CLI's default; otherwise at least one second.
	Timeout time.Duration
	// AlwaysLoad sends the tools to the model from the start instead of behind tool search.
	AlwaysLoad bool
}

// MCPHTTP is an MCP server reached over streamable HTTP.
type MCPHTTP struct {
	URL     string
	Headers map[string]string
	// Tools gives permissions for single tools.
	Tools []MCPToolPolicy
	// Timeout bounds each call. Zero leaves the CLI's default; otherwise at least one second.
	Timeout time.Duration
	// AlwaysLoad sends the tools to the model from the start instead of behind tool search.
	AlwaysLoad bool
}

// An MCPInProcess is an MCP server inside this program, a function from message to message.
// [NewToolServer] makes one from tools; package tool/mcp mounts a server of the official SDK.
//
// One value may serve several clients at once.
type MCPInProcess struct {
	// Handle answers one JSON-RPC message of the CLI. A nil reply means that none is due: the
	// message was a notification or a response. It is called from several goroutines at once. Its
	// context ends when the CLI cancels the call or the client closes.
	Handle func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error)
	// Attach, if set, is called when a client connects, with a function that sends a message of the
	// server's own to the CLI. The function it returns, if not nil, is called when the client closes.
	Attach func(send func(context.Context, json.RawMessage) error) (detach func())
	// Session, if set, replaces Handle and Attach for servers with state for each client: it makes one client's handler.
	Session func(send func(context.Context, json.RawMessage) error) MCPSession
	// Manifest, if set, gives the CLI the MCP handshake at the start, which saves time. CLIs without manifests do the
	// handshake.
	Manifest func() (*MCPManifest, error)
	// Timeout bounds each call. Zero leaves the CLI's default; otherwise at least one second.
	Timeout time.Duration
	// Tools gives permissions for single tools.
	Tools []MCPToolPolicy

	direct directHandler // a shortcut past the second decoding, for our own tools
}

// An MCPSession serves one client of an [MCPInProcess].
type MCPSession struct {
	// Handle is like [MCPInProcess.Handle].
	Handle func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error)
	// Close is called when the client closes. Nil is fine.
	Close func()
}

// An MCPManifest holds what a server would answer in the handshake.
type MCPManifest struct {
	// InitializeResult is the answer to "initialize"; its protocolVersion must be the CLI's own.
	InitializeResult json.RawMessage `json:"initializeResult"`
	// ToolsListResult is the answer to "tools/list".
	ToolsListResult json.RawMessage `json:"toolsListResult"`
}

// An MCPToolPolicy is the permission of one tool of a server.
type MCPToolPolicy struct {
	Name   string    `json:"name"`
	Policy MCPPolicy `json:"permission_policy"`
	// OrgMaxPermission caps the policy for an organisation. Empty leaves it out.
	OrgMaxPermission string `json:"org_max_permission,omitempty"`
}

// An MCPPolicy sets whether a tool runs without a question.
type MCPPolicy string

// The policies the CLI knows.
const (
	MCPAlwaysAllow MCPPolicy = "always_allow"
	MCPAlwaysAsk   MCPPolicy = "always_ask"
	MCPAlwaysDeny  MCPPolicy = "always_deny"
)

type mcpEntry struct {
	Type       string            `json:"type"`
	Name       string            `json:"name,omitempty"`
	Command    string            `json:"command,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Timeout    int64             `json:"timeout,omitempty"` // milliseconds
	AlwaysLoad bool              `json:"alwaysLoad,omitempty"`
	Tools      []MCPToolPolicy   `json:"tools,omitempty"`
}

func (s MCPStdio) configJSON(string) (json.RawMessage, error) {
	return json.Marshal(mcpEntry{Type: "stdio", Command: s.Command, Args: s.Args, Env: s.Env, Timeout: s.Timeout.Milliseconds(), AlwaysLoad: s.AlwaysLoad})
}

func (s MCPSSE) configJSON(string) (json.RawMessage, error) {
	return json.Marshal(mcpEntry{Type: "sse", URL: s.URL, Headers: s.Headers, Tools: s.Tools, Timeout: s.Timeout.Milliseconds(), AlwaysLoad: s.AlwaysLoad})
}

func (s MCPHTTP) configJSON(string) (json.RawMessage, error) {
	return json.Marshal(mcpEntry{Type: "http", URL: s.URL, Headers: s.Headers, Tools: s.Tools, Timeout: s.Timeout.Milliseconds(), AlwaysLoad: s.AlwaysLoad})
}

func (s *MCPInProcess) configJSON(name string) (json.RawMessage, error) {
	return json.Marshal(mcpEntry{Type: "sdk", Name: name, Tools: s.Tools, Timeout: s.Timeout.Milliseconds()})
}

// hasPolicies reports whether a server outside this process has permissions for single tools. The
// CLI reads those only in mcp_set_servers; on its command line it ignores them.
func hasPolicies(s MCPServer) bool {
	switch s := s.(type) {
	case MCPSSE:
		return len(s.Tools) > 0
	case *MCPSSE:
		return len(s.Tools) > 0
	case MCPHTTP:
		return len(s.Tools) > 0
	case *MCPHTTP:
		return len(s.Tools) > 0
	}
	return false
}

func (s MCPStdio) validate() error {
	if s.Command == "" {
		return errors.Join(errors.New("Command is empty"), validTimeout(s.Timeout))
	}
	return validTimeout(s.Timeout)
}

func (s MCPSSE) validate() error {
	return errors.Join(validURL(s.URL), validTimeout(s.Timeout), validPolicies(s.Tools))
}

func (s MCPHTTP) validate() error {
	return errors.Join(validURL(s.URL), validTimeout(s.Timeout), validPolicies(s.Tools))
}

func (s *MCPInProcess) validate() error {
	if s == nil {
		return errors.New("is nil")
	}
	errs := []error{validTimeout(s.Timeout), validPolicies(s.Tools)}
	if s.Handle == nil && s.Session == nil {
		errs = append(errs, errors.New("both Handle and Session are nil; use NewToolServer(...).Server(), or set Handle"))
	}
	return errors.Join(errs...)
}

func validURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("URL %q is not an absolute http or https address", s)
	}
	return nil
}

func validTimeout(d time.Duration) error {
	if d != 0 && d < time.Second {
		return fmt.Errorf("Timeout %s is below one second, which the CLI refuses; zero means its default", d)
	}
	return nil
}

func validPolicies(tools []MCPToolPolicy) error {
	var errs []error
	for i, p := range tools {
		switch p.Policy {
		case MCPAlwaysAllow, MCPAlwaysAsk, MCPAlwaysDeny:
		default:
			errs = append(errs, fmt.Errorf("Tools[%d].Policy %q is not always_allow, always_ask or always_deny", i, p.Policy))
		}
		if p.Name == "" {
			errs = append(errs, fmt.Errorf("Tools[%d].Name is empty", i))
		}
	}
	return errors.Join(errs...)
}
