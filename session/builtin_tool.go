// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

// A ToolSource is the program that ran a tool.
type ToolSource string

// The sources of tool calls.
const (
	// NativeTool is a tool of the agent itself.
	NativeTool ToolSource = "native"
	// BridgedTool is a tool of this program, or of another MCP server.
	BridgedTool ToolSource = "bridged"
)

// ToolInvoked records that a tool was called, and how the call ended. The slice keeps one for each call: the first of each
// CallID. Use [Session.RecordTool], which keeps a second one out of the log too and dispatches what follows from the call.
type ToolInvoked struct {
	EventID string `json:"eventId,omitzero"`
	// CallID is the tool use id. Without one nothing is known to be the same call.
	CallID event.CallID `json:"toolUseId"`
	// Name is the name of the tool as the model uses it, without the name of our own server.
	Name   string     `json:"toolName"`
	Source ToolSource `json:"source,omitzero"`
	// Adapter is the agent, and Prompt the name of the prompt that it works on.
	Adapter string `json:"adapter,omitzero"`
	Prompt  string `json:"prompt,omitzero"`
	// AgentID is the subagent that called; empty means the main agent.
	AgentID string          `json:"agentId,omitzero"`
	Params  json.RawMessage `json:"params,omitempty"`
	// Dir is the working directory of the caller, if known.
	Dir    string           `json:"cwd,omitzero"`
	Status event.ToolStatus `json:"status"`
	// Value is the result itself, and Output what the model read of it, which may be cut.
	Value  json.RawMessage `json:"value,omitempty"`
	Output string          `json:"output,omitzero"`
	// Error is why it did not succeed.
	Error string `json:"error,omitzero"`
	// Duration is written in milliseconds, as durationMs.
	Duration time.Duration `json:"-"`
	// Path is the file that a call of a file tool was about, as a clean absolute path.
	Path string `json:"path,omitzero"`
	// MorePaths are the others, where it was about several, as a patch is.
	MorePaths []string `json:"morePaths,omitempty"`
}

// Success reports whether the tool did what it was asked.
func (t ToolInvoked) Success() bool { return t.Status == event.ToolSuccess }

// String is the tool, what became of the call, and why.
func (t ToolInvoked) String() string {
	text := fmt.Sprintf("%s %s in %s", t.Name, t.Status, t.Duration.Round(time.Millisecond))
	if t.Error != "" {
		text += ": " + t.Error
	}
	return text
}

type toolInvokedFields ToolInvoked

type toolInvokedWire struct {
	toolInvokedFields
	DurationMS float64 `json:"durationMs,omitzero"`
}

// MarshalJSON writes the duration in milliseconds.
func (t ToolInvoked) MarshalJSON() ([]byte, error) {
	return plainjson.Marshal(toolInvokedWire{toolInvokedFields(t), toMilliseconds(t.Duration)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *ToolInvoked) UnmarshalJSON(data []byte) error {
	var w toolInvokedWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	duration, err := fromMilliseconds(w.DurationMS)
	if err != nil {
		return err
	}
	*t = ToolInvoked(w.toolInvokedFields)
	t.Duration = duration
	return nil
}

// EventKind implements [event.Payload].
func (ToolInvoked) EventKind() event.Kind { return "tool:invoked" }

func callIDOf(v any) any { return v.(ToolInvoked).CallID }

func firstReport(_ *slice, all *items[ToolInvoked], e ToolInvoked) (*items[ToolInvoked], error) {
	if e.CallID != "" {
		all = all.index(callIDOf)
		if _, known := all.positions.Get(e.CallID); known {
			return all, nil
		}
	}
	return all.with(e), nil
}
