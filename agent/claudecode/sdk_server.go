// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/tool"
)

// SDKServerOptions configures [NewSDKServer]. Nil and the zero value are ready to use.
type SDKServerOptions struct {
	SDKToolOptions
	// Name and Version are how the server introduces itself. They are not the key that tool names
	// carry: see [SDKServer.Server]. Empty means [tool.DefaultServerName] and [tool.DefaultServerVersion].
	Name, Version string
	// Instructions are put into the model's context, under the name of the server.
	Instructions string
	// Logger receives tools that cannot be served. Nil discards.
	Logger *slog.Logger
}

// An SDKServer serves tools of package tool to the CLI as one in-process MCP server; use [claude.ToolServer] for
// tools of [claude.NewTool].
//
// A server of a [tool.Registry] follows it: tools that are added, replaced or removed later are so for the
// model too, from its next request on, as far as the CLI lets it see changes; see [claude.ToolServer].
type SDKServer struct {
	server *claude.ToolServer
	from   tool.Set
	opts   SDKServerOptions
	stop   func()

	refreshing sync.Mutex // held while clients take over a change, which takes time
	mu         sync.Mutex
	tools      []converted
}

// NewSDKServer makes a server. Close it when it is no longer used.
func NewSDKServer(from tool.Set, opts *SDKServerOptions) (*SDKServer, error) {
	s := &SDKServer{from: from, opts: orZero(opts), stop: func() {}}
	s.opts.Logger = safelog.Logger(s.opts.Logger)
	s.opts.Name, s.opts.Version = cmp.Or(s.opts.Name, tool.DefaultServerName), cmp.Or(s.opts.Version, tool.DefaultServerVersion)
	var err error
	serverOpts := &claude.ToolServerOptions{Instructions: s.opts.Instructions, Logger: s.opts.Logger}
	s.server, err = claude.NewToolServer(s.opts.Name, s.opts.Version, serverOpts)
	if err != nil {
		return nil, err
	}
	if err := s.refresh(); err != nil {
		return nil, fmt.Errorf("claudecode: serving %s: %w", s.opts.Name, err)
	}
	if r, ok := from.(*tool.Registry); ok {
		s.stop = r.Follow(tool.Follower{Changed: s.follow, Withholds: s.withholds})
	}
	return s, nil
}

// follow takes over a change of the registry. If the new set of tools cannot be served, the last one stays.
func (s *SDKServer) follow() {
	if err := s.refresh(); err != nil {
		s.opts.Logger.Error("the changed tools cannot be served; the last ones stay", "error", err)
	}
}

// withholds reports whether a tool is not served, or whether a client has not listed the last change, which may
// be about this tool.
func (s *SDKServer) withholds(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	served := slices.ContainsFunc(s.tools, func(c converted) bool { return c.tool.Name == name })
	return !served || !s.server.Listed()
}

func (s *SDKServer) refresh() error {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	tools, err := convert(s.from, &s.opts.SDKToolOptions)
	if err != nil {
		return err
	}
	sdk := sdkTools(tools)
	if _, err := claude.NewToolServer(s.opts.Name, s.opts.Version, nil, sdk...); err != nil {
		return err
	}
	s.mu.Lock()
	s.tools = tools
	s.mu.Unlock()
	return s.server.Set(sdk...) // only the notification of a client can still fail
}

// Server returns the entry for claude.Options.MCPServers. Tool names carry its key there: "mcp__key__name".
func (s *SDKServer) Server() *claude.MCPInProcess { return s.server.Server() }

// Tools returns the tools as they are served.
func (s *SDKServer) Tools() []claude.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sdkTools(s.tools)
}

// ToolNames returns the names of all tools as the model knows them, without the prefix of the server.
func (s *SDKServer) ToolNames() []string { return s.names(0) }

// MutatingToolNames returns the names of the tools that mutate.
func (s *SDKServer) MutatingToolNames() []string { return s.names(tool.Mutates) }

// DangerousToolNames returns the names of the tools that are dangerous.
func (s *SDKServer) DangerousToolNames() []string { return s.names(tool.Dangerous) }

func (s *SDKServer) names(with tool.Risk) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	for _, c := range s.tools {
		if c.tool.Risks().Has(with) {
			names = append(names, c.sdk.Name)
		}
	}
	return names
}

// Close ends the following of the registry.
func (s *SDKServer) Close() { s.stop() }
