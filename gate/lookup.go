// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/tool"
)

// A Lookup finds tools by name. A [tool.Registry] is one, and so are [tool.Tools].
type Lookup interface {
	Lookup(name string) (*tool.Tool, bool)
}

// Knows makes a policy that judges nothing: it gives the gate the tools that the MCP server of that key
// serves, so that the other policies know their risks and capabilities.
func Knows(server string, tools Lookup) Policy {
	return Policy{Name: "tools", Tools: map[string]Lookup{server: tools}}
}

// KnowsAgent makes a policy that judges nothing: it gives the gate the tools that the agent has by itself. An
// [agent.Runner] adds it, and so does an evaluation. Nil adds no tools.
func KnowsAgent(c *tool.Catalogue) Policy { return Policy{Name: "agent", Catalogue: c} }

var errNoTools = errors.New("Invalid input: expected tool list or Registry, got nil") //nolint:staticcheck // programs compare this text

func checkLookup(tools Lookup) error {
	switch tools := tools.(type) {
	case nil:
		return errNoTools
	case *tool.Registry:
		if tools == nil {
			return errNoTools
		}
	case tool.Tools:
		for i, t := range tools {
			if t == nil {
				return fmt.Errorf("Invalid tool input: tool %d is nil", i) //nolint:staticcheck // programs compare this text
			}
			if t.Name == "" {
				return fmt.Errorf("Invalid tool input: tool %d has no name", i) //nolint:staticcheck // programs compare this text
			}
		}
	}
	return nil
}

// renamed finds tools by their served names, or by id. It asks again at each lookup: tools may be added at any time.
type renamed struct {
	tools  func() []*tool.Tool
	config func(*tool.Tool) tool.Presentation
}

// servedName is the name by which a lookup finds a tool that it has.
func servedName(l Lookup, t *tool.Tool) string {
	if r, ok := l.(renamed); ok {
		return cmp.Or(r.config(t).Name, t.Name)
	}
	return t.Name
}

// Lookup implements [Lookup]. Of several tools with one name the last is found.
func (r renamed) Lookup(name string) (*tool.Tool, bool) {
	var found *tool.Tool
	for _, t := range r.tools() {
		if cmp.Or(r.config(t).Name, t.Name) == name || t.ID() == name {
			found = t
		}
	}
	return found, found != nil
}

// rename lays the names of a configuration over the tools. Nil renames nothing.
func rename(tools Lookup, config func(*tool.Tool) tool.Presentation) (Lookup, error) {
	if config == nil {
		return tools, nil
	}
	switch tools := tools.(type) {
	case *tool.Registry:
		return renamed{tools.Tools, config}, nil
	case tool.Tools:
		return renamed{func() []*tool.Tool { return tools }, config}, nil
	}
	return nil, fmt.Errorf("ToolConfig needs a registry that lists its tools; %T does not", tools)
}
