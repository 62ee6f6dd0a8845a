// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/ident"
)

// KnownNames are the names that a list of tools may have.
type KnownNames struct {
	// Catalogue has the agent's own tools. With nil every name without a server is accepted.
	Catalogue *Catalogue
	// Registry has the tools of this program, and may be nil. Server is the MCP server that serves them; empty means
	// [DefaultServerName].
	Registry *Registry
	Server   string
	// Servers are the other MCP servers. Nil accepts every server.
	Servers []string
	// Also are further names: of tools, or "mcp__server". Option is where a caller writes them, for the advice of errors.
	Also   []string
	Option string
}

// An unknownNameError is a name in a list of tools that no tool has.
type unknownNameError struct {
	name    string
	nearest []string
	option  string // where the caller names a tool that only a newer agent has, or one that is added later
}

func (e *unknownNameError) Error() string { return "there is no tool " + e.name }

// Advice implements [advice.Adviser].
func (e *unknownNameError) Advice() string {
	next := "correct the name"
	if len(e.nearest) > 0 {
		next = "write " + strings.Join(e.nearest, " or ")
	}
	if e.option != "" {
		next += fmt.Sprintf("; if it is a tool of a newer agent, or is added later, name it in %s too", e.option)
	}
	return next
}

var _ advice.Adviser = (*unknownNameError)(nil)

// Check reports the first name that no tool has. A name may have an argument, as "Bash(git log *)". Of a tool of
// another MCP server only the server is known: its tools are not, until the agent has connected to it. Nor are
// tools that are added to the Registry later: "mcp__drover__x" is refused only if a tool of nearly that name is there.
func (k KnownNames) Check(names ...string) error {
	for _, name := range names {
		name, _, _ = strings.Cut(strings.TrimSpace(name), "(")
		if near, known := k.find(strings.TrimSpace(name)); !known {
			return &unknownNameError{name, near, k.Option}
		}
	}
	return nil
}

// find reports whether a name is known, or else which names are like it.
func (k KnownNames) find(name string) (near []string, known bool) {
	if slices.Contains(k.Also, name) || name == "" || name == "*" { // the empty name is an error of its own
		return nil, true
	}
	own := cmp.Or(k.Server, DefaultServerName)
	if own == DefaultServerName {
		name = ident.PresentTool(name)
	}
	n, isMCP := ParseMCPName(name, append(slices.Clone(k.Servers), own)...)
	switch {
	case !isMCP:
		return k.findBare(name)
	case n.Server == NewMCPName(own, "").Server:
		return k.findOwn(n)
	case k.Servers == nil || slices.ContainsFunc(k.Servers, func(s string) bool { return NewMCPName(s, "").Server == n.Server }),
		slices.Contains(k.Also, NewMCPName(n.Server, "").String()):
		return nil, true
	}
	servers := []string{NewMCPName(own, "").Server}
	for _, server := range k.Servers {
		if name := NewMCPName(server, "").Server; !slices.Contains(servers, name) {
			servers = append(servers, name)
		}
	}
	for _, server := range ident.Nearest(n.Server, servers) {
		near = append(near, MCPName{server, n.Tool}.String())
	}
	return near, false
}

func (k KnownNames) findBare(name string) (near []string, known bool) {
	if k.Catalogue == nil {
		return nil, true
	}
	if _, native := k.Catalogue.Native(name); native {
		return nil, true
	}
	if k.Registry != nil {
		if _, found := k.Registry.Lookup(name); found { // also by its id
			return nil, true
		}
	}
	all := k.own()
	for _, n := range k.Catalogue.Natives {
		all = append(all, n.Name)
	}
	return ident.Nearest(name, all), false
}

func (k KnownNames) findOwn(n MCPName) (near []string, known bool) {
	own := k.own()
	if n.Tool == "" || slices.ContainsFunc(own, func(o string) bool { return NewMCPName("", o).Tool == NewMCPName("", n.Tool).Tool }) {
		return nil, true
	}
	for _, o := range ident.Nearest(n.Tool, own) {
		near = append(near, NewMCPName(n.Server, o).String())
	}
	return near, len(near) == 0
}

// own are the names of the tools of this program, as far as they are known.
func (k KnownNames) own() []string {
	all := slices.Clone(k.Also)
	if k.Registry != nil {
		for _, t := range k.Registry.Tools() {
			all = append(all, t.Name)
		}
	}
	return all
}
