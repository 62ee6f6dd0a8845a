// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/drover-agents/drover/event"
)

// A ToolSource says who ran a tool.
type ToolSource string

// The sources of tool calls.
const (
	// NativeTool is a tool of the agent itself.
	NativeTool ToolSource = "native"
	// BridgedTool is a tool of this program, or of another MCP server.
	BridgedTool ToolSource = "bridged"
)

// ToolInvoked: a tool was called, and this is how it ended. There is one for each call, however it
// ended.
type ToolInvoked struct {
	EventID string `json:"eventId,omitzero"`
	// CallID is the tool use id.
	CallID string `json:"toolUseId"`
	// Name is the tool as the model says it, without the name of our own server.
	Name    string           `json:"toolName"`
	Source  ToolSource       `json:"source,omitzero"`
	Adapter string           `json:"adapter,omitzero"`
	Prompt  string           `json:"prompt,omitzero"`
	AgentID string           `json:"agentId,omitzero"`
	Params  json.RawMessage  `json:"params,omitempty"`
	Status  event.ToolStatus `json:"status"`
	// Value is the result itself, and Output what the model read of it, which may be cut.
	Value    json.RawMessage `json:"value,omitempty"`
	Output   string          `json:"output,omitzero"`
	Error    string          `json:"error,omitzero"`
	Duration time.Duration   `json:"durationNs,omitzero"`
	// Path is the file that the call was about, as a clean absolute path, where there is one.
	Path string `json:"path,omitzero"`
}

// Success reports whether the tool did what it was asked.
func (t ToolInvoked) Success() bool { return t.Status == event.ToolSuccess }

// A Plan is what the agent means to do.
type Plan struct {
	Steps []PlanStep `json:"steps"`
}

// A PlanStep is one step of a [Plan]. Status is "pending", "in_progress" or "completed".
type PlanStep struct {
	Description string `json:"content"`
	Status      string `json:"status"`
	ActiveForm  string `json:"activeForm,omitzero"`
}

// Current is the step that is being worked on, and whether there is one.
func (p Plan) Current() (PlanStep, bool) {
	i := slices.IndexFunc(p.Steps, func(s PlanStep) bool { return s.Status == "in_progress" })
	if i < 0 {
		return PlanStep{}, false
	}
	return p.Steps[i], true
}

// PlanUpdated: the agent has a new plan.
type PlanUpdated Plan

// ModifiedFiles are the files that tools have written, in the order of their first change.
type ModifiedFiles struct {
	Files []FileModified `json:"files"`
}

// FileModified: a tool has written a file.
type FileModified struct {
	Path string `json:"path"`
	Tool string `json:"tool"`
}

func (m ModifiedFiles) with(e FileModified) ModifiedFiles {
	files := slices.Clone(m.Files)
	if i := slices.IndexFunc(files, func(f FileModified) bool { return f.Path == e.Path }); i >= 0 {
		files[i] = e
		return ModifiedFiles{files}
	}
	return ModifiedFiles{append(files, e)}
}

// Workspace is the directory that the agent works in.
type Workspace struct {
	Root string `json:"root"`
}

// ToolPermissions say which tools the agent may use from now on. The last one holds.
type ToolPermissions struct {
	Blocked []string `json:"blocked,omitempty"`
	Allowed []string `json:"allowed,omitempty"`
}

// Feedback is something that the agent was told about its own work.
type Feedback struct {
	Provider     string   `json:"provider"`
	Summary      string   `json:"summary"`
	Observations []string `json:"observations,omitempty"`
	Suggestions  []string `json:"suggestions,omitempty"`
	// Severity is "info", "caution" or "warning".
	Severity string `json:"severity,omitzero"`
	// CallID is the tool call that it was said after.
	CallID string `json:"toolUseId,omitzero"`
}

// PolicyState is what policies about tool calls need to know of the past. Rolling back a call takes it
// back too.
type PolicyState struct {
	// Calls counts the calls that ended.
	Calls int `json:"calls"`
	// Invoked has the tools that have succeeded, and ReadPaths the files that were read.
	Invoked   map[string]bool `json:"invoked,omitempty"`
	ReadPaths map[string]bool `json:"readPaths,omitempty"`
}

func (p PolicyState) with(e ToolInvoked) PolicyState {
	p.Calls++
	if e.Success() && !p.Invoked[e.Name] {
		p.Invoked = withMember(p.Invoked, e.Name)
	}
	return p
}

func withMember(set map[string]bool, member string) map[string]bool {
	set = maps.Clone(set)
	if set == nil {
		set = map[string]bool{}
	}
	set[member] = true
	return set
}

// EventKind implements [event.Payload].
func (ToolInvoked) EventKind() event.Kind { return "tool:invoked" }

// EventKind implements [event.Payload].
func (Plan) EventKind() event.Kind { return "plan:set" }

// EventKind implements [event.Payload].
func (PlanUpdated) EventKind() event.Kind { return "plan:updated" }

// EventKind implements [event.Payload].
func (ModifiedFiles) EventKind() event.Kind { return "file:modified_all" }

// EventKind implements [event.Payload].
func (FileModified) EventKind() event.Kind { return "file:modified" }

// EventKind implements [event.Payload].
func (Workspace) EventKind() event.Kind { return "workspace:set" }

// EventKind implements [event.Payload].
func (ToolPermissions) EventKind() event.Kind { return "tool:permissions" }

// EventKind implements [event.Payload].
func (Feedback) EventKind() event.Kind { return "guard:feedback" }

// EventKind implements [event.Payload].
func (PolicyState) EventKind() event.Kind { return "guard:policy_state" }
