// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"

	"github.com/drover-agents/drover/tool"
)

// A Lookup finds tools by name. A [tool.Registry] is one; [Tools] makes one of single tools.
type Lookup interface {
	Lookup(name string) (*tool.Tool, bool)
}

// Tools makes a [Lookup] of tools that are in no registry, by name or id. Of several with one name
// the last is found.
func Tools(tools ...*tool.Tool) Lookup { return toolList(tools) }

type toolList []*tool.Tool

// Lookup implements [Lookup].
func (l toolList) Lookup(name string) (*tool.Tool, bool) {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].Name == name || l[i].ID() == name {
			return l[i], true
		}
	}
	return nil, false
}

// Tools returns the list.
func (l toolList) Tools() []*tool.Tool { return l }

// Knows makes a policy that judges nothing: it tells the gate which tools the MCP server of that key
// serves, so that the other policies know their risks and capabilities.
func Knows(server string, tools Lookup) Policy {
	return Policy{Name: "tools", Tools: map[string]Lookup{server: tools}}
}

// The texts are part of the promise: programs recognise them.
var (
	errNoTools = errors.New("Invalid input: expected tool, tool array, or Armorer")
	errBadTool = errors.New("Invalid tool input")
)

func checkLookup(tools Lookup) error {
	switch tools := tools.(type) {
	case nil:
		return errNoTools
	case *tool.Registry:
		if tools == nil {
			return errNoTools
		}
	case toolList:
		for i, t := range tools {
			if t == nil {
				return fmt.Errorf("%w: tools[%d] is nil", errBadTool, i)
			}
		}
	}
	return nil
}

// renamed finds tools by the names under which they are served, or by id. It asks again at each lookup: tools
// may be added at any time.
type renamed struct {
	tools interface{ Tools() []*tool.Tool }
	name  func(*tool.Tool) string
}

// Lookup implements [Lookup]. Of several tools with one name the last is found.
func (r renamed) Lookup(name string) (*tool.Tool, bool) {
	var found *tool.Tool
	for _, t := range r.tools.Tools() {
		served := r.name(t)
		if served == "" {
			served = t.Name
		}
		if served == name || t.ID() == name {
			found = t
		}
	}
	return found, found != nil
}

// rename lays the names that a function gives over the tools. Nil renames nothing.
func rename(tools Lookup, name func(*tool.Tool) string) (Lookup, error) {
	if name == nil {
		return tools, nil
	}
	listing, ok := tools.(interface{ Tools() []*tool.Tool })
	if !ok {
		return nil, fmt.Errorf("ToolName needs a registry that lists its tools; %T does not", tools)
	}
	return renamed{listing, name}, nil
}
