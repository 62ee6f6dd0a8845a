// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/tool"
)

// The keys of _meta. Those of Drover carry what MCP has no words for, so that a registry which is served and imported
// again is the same. Agents tell the id of a call under keys of their own, which end alike; see [ToolUseID].
const (
	metaToolUseID = "drover/toolUseId"
	metaRisk      = "drover/risk"    // of a tool: a riskMeta
	metaFailure   = "drover/failure" // of a result: a failureMeta

	metaAlwaysLoad = "anthropic/alwaysLoad"
	metaSearchHint = "anthropic/searchHint"
)

// riskMeta is the risk of a tool in full. MCP's hints know no capability but the network, and cannot leave a risk unstated.
type riskMeta struct {
	Risk  []string `json:"risk"`
	Needs []string `json:"needs"`
}

func riskToMeta(r tool.Risk, c tool.Capability) riskMeta {
	return riskMeta{strings.Split(r.String(), ", "), strings.Split(c.String(), ", ")}
}

// flags gives the risks and capabilities. Names that are not known are passed over.
func (t riskMeta) flags() (r tool.Risk, c tool.Capability) {
	for _, risk := range []tool.Risk{tool.ReadOnly, tool.Mutates, tool.Dangerous} {
		if slices.Contains(t.Risk, risk.String()) {
			r |= risk
		}
	}
	for _, need := range []tool.Capability{tool.FileWrite, tool.ShellExecute, tool.NetworkAccess} {
		if slices.Contains(t.Needs, need.String()) {
			c |= need
		}
	}
	return r, c
}

// describe is a tool as tools/list shows it.
func describe(t *tool.Tool) *sdk.Tool {
	risks, needs := t.Risks(), t.Needs()
	d := &sdk.Tool{
		Name: t.Name, Title: t.Title, Description: t.Manual(), InputSchema: json.RawMessage(`{"type":"object"}`),
		Annotations: &sdk.ToolAnnotations{Title: t.Title, ReadOnlyHint: risks == tool.ReadOnly},
		Meta:        sdk.Meta{metaRisk: riskToMeta(risks, needs)},
	}
	if t.Input != nil {
		d.InputSchema = t.Input.JSON()
	}
	if t.Output != nil && !t.HideValue { // a hidden value cannot be promised
		d.OutputSchema = t.Output.JSON()
	}
	// Only known hints are set: a client assumes the worst of a missing one.
	if risks.Has(tool.Dangerous) {
		d.Annotations.DestructiveHint = new(true)
	}
	if needs.Has(tool.NetworkAccess) {
		d.Annotations.OpenWorldHint = new(true)
	}
	if t.AlwaysLoad {
		d.Meta[metaAlwaysLoad] = true
	}
	if t.SearchHint != "" {
		d.Meta[metaSearchHint] = t.SearchHint
	}
	return d
}

type failureMeta struct {
	Outcome   tool.Outcome  `json:"outcome"`
	Code      string        `json:"code,omitzero"`
	Category  tool.Category `json:"category,omitzero"`
	Retryable bool          `json:"retryable,omitzero"`
}

func callResult(r tool.Result) *sdk.CallToolResult {
	out := &sdk.CallToolResult{Content: []sdk.Content{}, IsError: !r.OK()}
	text := r.Render()
	if r.Outcome == tool.NeedsApproval {
		text = needsApproval + text
	}
	if text != "" {
		out.Content = append(out.Content, &sdk.TextContent{Text: text})
	}
	for _, image := range r.Images {
		out.Content = append(out.Content, &sdk.ImageContent{Data: image.Data, MIMEType: image.MIMEType})
	}
	if !r.OK() {
		out.Meta = sdk.Meta{metaFailure: failureOf(r)}
		return out
	}
	if r.Structured != nil && !r.HideValue {
		out.StructuredContent = r.Structured
	}
	return out
}

// keepPromise adds the structured value to a result that has none because its value writes its own
// text. Clients take a tool that promises one and gives none for broken.
func keepPromise(t *tool.Tool, r *tool.Result) {
	if t.Output == nil || !r.OK() || r.Structured != nil || r.HideValue || r.Value == nil {
		return
	}
	if raw, err := json.Marshal(r.Value); err == nil && t.Output.Validate(raw) == nil {
		r.Structured = raw
	}
}

func failureOf(r tool.Result) failureMeta {
	f := failureMeta{Outcome: r.Outcome}
	if r.Err != nil {
		f.Code, f.Category, f.Retryable = r.Err.Code, r.Err.Category, r.Err.Retryable
	}
	return f
}

// fromMeta reads what describe or callResult put into _meta. It arrives as plain JSON values.
func fromMeta[T any](meta sdk.Meta, key string) (T, bool) {
	var v T
	value, ok := meta[key]
	if !ok {
		return v, false
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return v, false
	}
	return v, json.Unmarshal(raw, &v) == nil
}
