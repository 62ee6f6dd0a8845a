// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// SDKToolOptions configures [ToSDKTools]. Nil and the zero value are ready to use.
type SDKToolOptions struct {
	// Only selects the tools that the model is to have, of those that are there now or added later. Nil means all.
	Only func(t *tool.Tool) bool
	// AlwaysLoad shows the model all tools from the start, as [tool.WithAlwaysLoad] does for one.
	AlwaysLoad bool
	// ToolConfig gives replacements for each tool. Nil gives none.
	ToolConfig func(t *tool.Tool) tool.Presentation
	// FormatResult makes what the CLI gets of every result, those of failed calls too: it must set
	// IsError itself. Nil means [FormatResult].
	FormatResult func(r tool.Result) claude.ToolResult
}

// ToSDKTools converts tools for [claude.NewToolServer], in their order. Calls of tools that come
// from a registry go through [tool.Registry.Execute], with its budget, decisions and events; others
// through [tool.Tool.Run]. Tools without a handler are left out. [NewSDKServer] does the rest as well.
func ToSDKTools(from tool.Set, opts *SDKToolOptions) ([]claude.Tool, error) {
	converted, err := convert(from, opts)
	if err != nil {
		return nil, err
	}
	return sdkTools(converted), nil
}

type converted struct {
	tool *tool.Tool
	sdk  claude.Tool
}

func sdkTools(all []converted) []claude.Tool {
	out := make([]claude.Tool, 0, len(all))
	for _, c := range all {
		out = append(out, c.sdk)
	}
	return out
}

func convert(from tool.Set, opts *SDKToolOptions) ([]converted, error) {
	o := orZero(opts)
	if o.FormatResult == nil {
		o.FormatResult = FormatResult
	}
	tools, run, err := tool.ToolsOf(from)
	if err != nil {
		return nil, err
	}
	var out []converted
	for _, t := range tools {
		if t.Served() && (o.Only == nil || o.Only(t)) {
			out = append(out, converted{t, o.convert(t, run)})
		}
	}
	return out, nil
}

func (o *SDKToolOptions) convert(t *tool.Tool, run tool.RunFunc) claude.Tool {
	var c tool.Presentation
	if o.ToolConfig != nil {
		c = o.ToolConfig(t)
	}
	name := cmp.Or(c.Name, t.Name)
	s := claude.Tool{
		Name: name, Description: cmp.Or(c.Description, t.Manual()), Title: t.Title,
		InputSchema: cmp.Or(c.Input, t.Input), AlwaysLoad: t.AlwaysLoad || o.AlwaysLoad, SearchHint: t.SearchHint,
		Annotations: annotations(t), CheckedByHandler: c.Input == nil, // another schema must be checked too
	}
	s.Handler = func(ctx context.Context, args json.RawMessage) (claude.ToolResult, error) {
		call := tool.Call{ID: event.CallID(claude.ToolUseIDFromContext(ctx)), Name: t.ID(), As: name, Input: args, Doubles: true}
		return o.FormatResult(run(tool.WithProgress(ctx, claude.ReportProgress), t, call)), nil
	}
	return s
}

// annotations are the risks for the CLI. It runs calls of read-only tools beside one another.
func annotations(t *tool.Tool) claude.ToolAnnotations {
	var a claude.ToolAnnotations
	risks := t.Risks()
	a.ReadOnly = risks == tool.ReadOnly
	if risks.Has(tool.Dangerous) {
		a.Destructive = new(true)
	}
	if t.Needs().Has(tool.NetworkAccess) {
		a.OpenWorld = new(true)
	}
	return a
}

// FormatResult makes what the CLI gets of a result: its text and images, the structured value where
// there is one, and the mark of an error for everything that did not succeed. The CLI shows the model
// the structured value instead of all else, so that it is left out beside images.
func FormatResult(r tool.Result) claude.ToolResult {
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
