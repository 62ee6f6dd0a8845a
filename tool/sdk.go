// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/schema"
)

// A Set is something that holds tools: a [*Registry], one [*Tool], or [Tools].
type Set interface {
	// set returns the tools, and what runs a call of one of them.
	set() ([]*Tool, func(ctx context.Context, t *Tool, call Call) Result, error)
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

func (r *Registry) set() ([]*Tool, func(context.Context, *Tool, Call) Result, error) {
	if r == nil {
		return nil, nil, errors.New("tool: Invalid input: expected tool, tool list, or Registry, got a nil Registry")
	}
	return r.Tools(), func(ctx context.Context, _ *Tool, call Call) Result { return r.Execute(ctx, call) }, nil
}

func (t *Tool) set() ([]*Tool, func(context.Context, *Tool, Call) Result, error) {
	return Tools{t}.set()
}

func (ts Tools) set() ([]*Tool, func(context.Context, *Tool, Call) Result, error) {
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

// An SDKTool is a tool as package claude serves it to the CLI.
type SDKTool = claude.Tool

// An SDKToolConfig replaces what the model is told about a tool. What is empty stays as it is.
type SDKToolConfig struct {
	Name        string
	Description string
	// Input replaces the schema that the model is shown. Arguments must fit it, and the tool's own.
	Input *schema.Schema
}

// SDKToolOptions configures [ToSDKTools]. Nil and the zero value are ready to use.
type SDKToolOptions struct {
	// Only tells which tools the model is to have, of those that are there now or added later. Nil
	// means all.
	Only func(t *Tool) bool
	// AlwaysLoad shows the model all tools from the start, as [WithAlwaysLoad] does for one.
	AlwaysLoad bool
	// ToolConfig gives replacements for each tool. Nil gives none.
	ToolConfig func(t *Tool) SDKToolConfig
	// FormatResult makes what the CLI gets of every result, those of failed calls too: it must set
	// IsError itself. Nil means [FormatResult].
	FormatResult func(r Result) claude.ToolResult
}

// ToSDKTools converts tools for [claude.NewToolServer], in their order. Calls of tools that come
// from a registry go through [Registry.Execute], with its budget, decisions and events; others
// through [Tool.Run]. Tools without a handler are left out. [NewSDKServer] does the rest as well.
func ToSDKTools(from Set, opts *SDKToolOptions) ([]SDKTool, error) {
	converted, err := convert(from, opts)
	if err != nil {
		return nil, err
	}
	return sdkTools(converted), nil
}

// converted is a tool beside its SDK form.
type converted struct {
	tool *Tool
	sdk  SDKTool
}

func sdkTools(all []converted) []SDKTool {
	out := make([]SDKTool, 0, len(all))
	for _, c := range all {
		out = append(out, c.sdk)
	}
	return out
}

func convert(from Set, opts *SDKToolOptions) ([]converted, error) {
	var o SDKToolOptions
	if opts != nil {
		o = *opts
	}
	if o.FormatResult == nil {
		o.FormatResult = FormatResult
	}
	if from == nil {
		return nil, errors.New("tool: Invalid input: expected tool, tool list, or Registry, got nil")
	}
	tools, execute, err := from.set()
	if err != nil {
		return nil, err
	}
	var out []converted
	for _, t := range tools {
		if t.Served() && (o.Only == nil || o.Only(t)) {
			out = append(out, converted{t, o.convert(t, execute)})
		}
	}
	return out, nil
}

func (o *SDKToolOptions) convert(t *Tool, execute func(context.Context, *Tool, Call) Result) SDKTool {
	var c SDKToolConfig
	if o.ToolConfig != nil {
		c = o.ToolConfig(t)
	}
	name := cmp.Or(c.Name, t.Name)
	s := SDKTool{
		Name: name, Description: cmp.Or(c.Description, t.Manual()), Title: t.Title,
		InputSchema: cmp.Or(c.Input, t.Input), AlwaysLoad: t.AlwaysLoad || o.AlwaysLoad, SearchHint: t.SearchHint,
		Annotations: annotations(t), CheckedByHandler: c.Input == nil, // another schema must be checked too
	}
	s.Handler = func(ctx context.Context, args json.RawMessage) (claude.ToolResult, error) {
		call := Call{ID: claude.ToolUseIDFromContext(ctx), Name: t.ID(), As: name, Input: args, Doubles: true}
		return o.FormatResult(execute(WithProgress(ctx, claude.ReportProgress), t, call)), nil
	}
	return s
}

// annotations tells the CLI the risks. It runs calls of read-only tools beside one another.
func annotations(t *Tool) claude.ToolAnnotations {
	var a claude.ToolAnnotations
	risks := t.Risks()
	a.ReadOnly = risks == ReadOnly
	if risks.Has(Dangerous) {
		a.Destructive = new(true)
	}
	if t.Needs().Has(NetworkAccess) {
		a.OpenWorld = new(true)
	}
	return a
}

// FormatResult makes what the CLI gets of a result: its text and images, the structured value where
// there is one, and the mark of an error for everything that did not succeed. The CLI shows the model
// the structured value instead of all else, so that it is left out beside images.
func FormatResult(r Result) claude.ToolResult {
	out := claude.ToolResult{IsError: !r.OK()}
	if text := r.Render(); text != "" {
		out.Content = append(out.Content, claude.ToolText(text))
	}
	for _, image := range r.Images {
		out.Content = append(out.Content, claude.ToolImage{Data: image.Data, MIMEType: image.MIMEType})
	}
	if r.OK() && len(r.Images) == 0 && !r.HideValue {
		out.Structured = r.Structured
	}
	return out
}
