// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

// PromptRendered records that a prompt was rendered and is about to be sent.
type PromptRendered struct {
	// EventID is what the [RenderedTools] of the same rendering refers to.
	EventID   string `json:"eventId"`
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
	Name      string `json:"name"`
	// Adapter is the agent that it is for: "claude-code".
	Adapter string `json:"adapter,omitzero"`
	Text    string `json:"text"`
	// Tools are the names of the tools, in order.
	Tools []string `json:"tools,omitempty"`
	// Descriptor has the hashes of what the prompt was made of.
	Descriptor json.RawMessage `json:"descriptor,omitempty"`
	// Params are the values that were bound, by the name of their type.
	Params map[string]json.RawMessage `json:"params,omitempty"`
}

// RenderedTools are the tools of a rendered prompt, as the model sees them.
type RenderedTools struct {
	// RenderEventID is the EventID of the [PromptRendered].
	RenderEventID string       `json:"renderEventId"`
	Tools         []ToolSchema `json:"tools"`
}

// A ToolSchema describes a tool.
type ToolSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// PromptExecuted records that an agent has answered a prompt, or has failed to.
type PromptExecuted struct {
	EventID   string `json:"eventId,omitzero"`
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
	Name      string `json:"name"`
	Adapter   string `json:"adapter,omitzero"`
	// Text is the answer, and Output the structured one.
	Text   string          `json:"text,omitzero"`
	Output json.RawMessage `json:"output,omitempty"`
	// Status is how the run ended, StopReason why the model stopped, and Error why it did not succeed.
	Status     event.DoneStatus `json:"status,omitzero"`
	StopReason string           `json:"stopReason,omitzero"`
	Error      string           `json:"error,omitzero"`
	// Duration is the whole time, APIDuration the part of it that the model took. They are written in
	// milliseconds, as durationMs and apiDurationMs.
	Duration    time.Duration `json:"-"`
	APIDuration time.Duration `json:"-"`
	// Usage has the tokens and the cost.
	Usage event.Usage `json:"usage,omitzero"`
	// SessionID is the conversation of the agent, and RunID the run.
	SessionID string `json:"sessionId,omitzero"`
	RunID     string `json:"runId,omitzero"`
	// Turns counts the model calls.
	Turns int `json:"turns,omitzero"`
}

type promptExecutedFields PromptExecuted

type promptExecutedWire struct {
	promptExecutedFields
	DurationMS    float64 `json:"durationMs,omitzero"`
	APIDurationMS float64 `json:"apiDurationMs,omitzero"`
}

// MarshalJSON writes the durations in milliseconds.
func (e PromptExecuted) MarshalJSON() ([]byte, error) {
	return plainjson.Marshal(promptExecutedWire{promptExecutedFields(e), toMilliseconds(e.Duration), toMilliseconds(e.APIDuration)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *PromptExecuted) UnmarshalJSON(data []byte) error {
	var w promptExecutedWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	whole, err := fromMilliseconds(w.DurationMS)
	if err != nil {
		return err
	}
	api, err := fromMilliseconds(w.APIDurationMS)
	if err != nil {
		return err
	}
	*e = PromptExecuted(w.promptExecutedFields)
	e.Duration, e.APIDuration = whole, api
	return nil
}

// VisibilityOverrides replace the visibility that templates set, by the dotted path of the section. The values are
// those of the package prompt: "full" and "summary".
type VisibilityOverrides struct {
	Sections map[string]string `json:"sections,omitempty"`
}

// SetVisibility shows a section otherwise.
type SetVisibility struct {
	Section    string `json:"section"`
	Visibility string `json:"visibility"`
	Reason     string `json:"reason,omitzero"`
}

// ClearVisibility removes the override of a section.
type ClearVisibility struct {
	Section string `json:"section"`
}

// ClearAllVisibility removes all overrides.
type ClearAllVisibility struct{}

func (o VisibilityOverrides) set(e SetVisibility) VisibilityOverrides {
	sections := maps.Clone(o.Sections)
	if sections == nil {
		sections = map[string]string{}
	}
	sections[e.Section] = e.Visibility
	return VisibilityOverrides{sections}
}

func (o VisibilityOverrides) clear(e ClearVisibility) VisibilityOverrides {
	sections := maps.Clone(o.Sections)
	delete(sections, e.Section)
	return VisibilityOverrides{sections}
}

func (VisibilityOverrides) clearAll(ClearAllVisibility) VisibilityOverrides {
	return VisibilityOverrides{}
}

// EventKind implements [event.Payload].
func (PromptRendered) EventKind() event.Kind { return "prompt:rendered" }

// EventKind implements [event.Payload].
func (RenderedTools) EventKind() event.Kind { return "prompt:tools" }

// EventKind implements [event.Payload].
func (PromptExecuted) EventKind() event.Kind { return "prompt:executed" }

// EventKind implements [event.Payload].
func (VisibilityOverrides) EventKind() event.Kind { return "prompt:visibility" }

// EventKind implements [event.Payload].
func (SetVisibility) EventKind() event.Kind { return "prompt:visibility_set" }

// EventKind implements [event.Payload].
func (ClearVisibility) EventKind() event.Kind { return "prompt:visibility_cleared" }

// EventKind implements [event.Payload].
func (ClearAllVisibility) EventKind() event.Kind { return "prompt:visibility_cleared_all" }
