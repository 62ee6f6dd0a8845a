// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// An Origin is where a tool comes from.
type Origin uint8

// The origins.
const (
	// Unknown is a bare name that is neither in a registry nor in the catalogue.
	Unknown Origin = iota
	// Builtin is a tool of the agent itself.
	Builtin
	// Registered is a tool of a registry of ours.
	Registered
	// Foreign is a tool of an MCP server that is not ours.
	Foreign
)

// A Call is a tool call as policies see it: its name is taken apart, and what is known of the tool is filled in.
type Call struct {
	event.ToolCall
	Origin Origin
	// Server is the key of the MCP server. A bare name has one only if exactly one registry of ours has the tool.
	Server string
	// Tool is the name without server and argument: "write-file" of "mcp__files__write-file", "Bash" of "Bash(ls)".
	Tool string
	// Argument is the text in parentheses after the name: "ls" of "Bash(ls)".
	Argument string
	// Risk and Needs are what is known of the tool.
	Risk  tool.Risk
	Needs tool.Capability
	// Again is set when facts about the call were requested before: a policy or the approver has replaced its input.
	Again bool

	agent   *tool.Catalogue
	name    string        // Tool, or the id that the call gives instead
	read    *inputReading // what policies have read from Input
	runs    *tool.Tool    // what a registry is about to run
	claimed *Call         // the tool that the call names, if another one would run
	as      string        // which of both tools this call is, if claimed is set
	before  *int          // how many calls came before it
	chain   *chain        // receives each verdict about the call; nil records none
	second  bool          // all policies judge an input that one of them has written
}

const mcpPrefix = "mcp__"

func isMCP(name string) bool { return strings.HasPrefix(strings.TrimSpace(name), mcpPrefix) }

func splitName(name string, keys []string) (server, bare, argument string) {
	bare = strings.TrimSpace(name)
	if open := strings.IndexByte(bare, '('); open > 0 && strings.HasSuffix(bare, ")") {
		bare, argument = strings.TrimSpace(bare[:open]), bare[open+1:len(bare)-1]
	}
	n, full := tool.ParseMCPName(bare, keys...)
	if !full {
		return "", bare, argument
	}
	return n.Server, n.Tool, argument
}

func serverKey(key string) string { return tool.NewMCPName(key, "").Server }

// canonical makes the call that policies see. Its server is taken from the name, unless the caller
// reports it: in "mcp__a__b__c" both "a" and "a__b" can be the server.
func (g *Gate) canonical(call event.ToolCall, server string) (c Call) {
	c.ToolCall, c.agent = call, g.agent
	keys := g.keys
	if server != "" {
		keys = []string{server}
	}
	c.Server, c.Tool, c.Argument = splitName(call.Name, keys)
	name := c.Tool
	c.name = name
	if isMCP(call.Name) {
		c.Origin = Foreign
		for _, s := range g.servers {
			if s.key != c.Server && (s.former == "" || s.former != c.Server) {
				continue
			}
			if t, ok := s.lookup.Lookup(name); ok {
				c.found(s.lookup, name, t)
			}
		}
		return c
	}
	found := 0
	for _, s := range g.servers {
		if t, ok := s.lookup.Lookup(name); ok {
			c.found(s.lookup, name, t)
			c.Server = s.key
			found++
		}
	}
	if found > 1 {
		c.Server = "" // it may be either
	}
	// A bare name may mean a tool of the agent too: then it has the risks of both.
	if native, ok := g.agent.Native(c.Tool); ok {
		if c.Origin != Registered {
			c.Origin = Builtin
		}
		c.Risk, c.Needs = union(c.Risk, native.Risk), c.Needs|native.Needs
		if native.More != nil {
			risk, needs := native.More(c.Input)
			c.Risk, c.Needs = union(c.Risk, risk), c.Needs|needs
		}
	}
	return c
}

// candidate makes the call that policies see of a tool that a registry is about to run. The name that
// the caller has for it may mean something else: a tool of the agent, or of another registry.
func (g *Gate) candidate(claimed Call, t *tool.Tool) Call {
	c := claimed
	c.runs, c.Origin, c.Server, c.Risk, c.Needs = t, Unknown, "", t.Risks(), t.Needs()
	id, matches := t.ID(), 0
	itself := slices.ContainsFunc(g.servers, func(s server) bool { return finds(s.lookup, id, t) })
	for _, s := range g.servers {
		found, ok := s.lookup.Lookup(id)
		if !ok || itself && found != t {
			continue
		}
		if matches == 0 || c.Server != s.key {
			matches++
		}
		c.add(found)
		c.Server, c.Tool = s.key, servedName(s.lookup, found)
	}
	if matches > 1 {
		c.Server = "" // it may be either
	}
	if c.Tool != claimed.Tool || c.Server != claimed.Server && isMCP(claimed.Name) {
		c.as, claimed.as = id, claimed.Name
		c.claimed = &claimed
	}
	return c
}

func finds(l Lookup, id string, t *tool.Tool) bool {
	found, ok := l.Lookup(id)
	return ok && found == t
}

// found adds a tool that a name means. Rules use names, so an id is replaced by one.
func (c *Call) found(in Lookup, name string, t *tool.Tool) {
	c.add(t)
	if strings.IndexByte(name, ':') >= 0 && name == t.ID() {
		c.Tool = servedName(in, t)
	}
}

func (c *Call) add(t *tool.Tool) {
	c.Origin = Registered
	c.Risk, c.Needs = union(c.Risk, t.Risks()), c.Needs|t.Needs()
}

// isPlumbing reports whether a call is of a tool that no list has to name; see [tool.Native.Plumbing].
func (c *Call) isPlumbing() bool { return c.Origin == Builtin && c.native().Plumbing }

// union joins risks: what mutates is not read-only.
func union(a, b tool.Risk) tool.Risk {
	r := a | b
	if r.Has(tool.Mutates) {
		r &^= tool.ReadOnly
	}
	return r
}
