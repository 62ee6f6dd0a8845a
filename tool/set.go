// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/schema"
)

// DefaultServerName is the name of the MCP server under which a model finds the tools of a program, and
// DefaultServerVersion its version, where the options name no other.
const (
	DefaultServerName    = "drover"
	DefaultServerVersion = "0.0.0"
)

// A Presentation replaces what a server shows the model of a tool. An empty field replaces nothing.
type Presentation struct {
	Name        string
	Description string
	// Input replaces the schema that the model is shown. Arguments must fit it, and the tool's own.
	Input *schema.Schema
}

// A Set is something that holds tools: a [*Registry], one [*Tool], or [Tools].
type Set interface {
	set() ([]*Tool, RunFunc, error)
}

// A RunFunc runs a call of a tool.
type RunFunc func(ctx context.Context, t *Tool, call Call) Result

// ToolsOf returns the tools of a set, for those who serve them, and what runs their calls: for a
// registry [Registry.Execute], with its budget, decisions and events, and otherwise [Tool.Run].
func ToolsOf(from Set) ([]*Tool, RunFunc, error) {
	if from == nil {
		return nil, nil, errors.New("tool: Invalid input: expected tool, tool list, or Registry, got nil")
	}
	return from.set()
}

// Tools is a list of tools, as a [Set].
type Tools []*Tool

// Lookup finds a tool by its name or its id. Of several with the name it is the last.
func (ts Tools) Lookup(name string) (*Tool, bool) {
	isID := strings.IndexByte(name, ':') >= 0 // no name has a colon, and to make an id costs
	for _, t := range slices.Backward(ts) {
		if t.Name == name || isID && t.ID() == name {
			return t, true
		}
	}
	return nil, false
}

func (r *Registry) set() ([]*Tool, RunFunc, error) {
	if r == nil {
		return nil, nil, errors.New("tool: Invalid input: expected tool, tool list, or Registry, got a nil Registry")
	}
	return r.Tools(), func(ctx context.Context, _ *Tool, call Call) Result { return r.Execute(ctx, call) }, nil
}

func (t *Tool) set() ([]*Tool, RunFunc, error) { return Tools{t}.set() }

func (ts Tools) set() ([]*Tool, RunFunc, error) {
	for i, t := range ts {
		if t == nil {
			return nil, nil, fmt.Errorf("tool: Invalid tool input: tool %d is nil", i)
		}
		if err := t.Check(); err != nil {
			return nil, nil, err
		}
	}
	return ts, func(ctx context.Context, t *Tool, call Call) Result { return t.Run(ctx, call) }, nil
}
