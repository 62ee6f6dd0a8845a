// SPDX-License-Identifier: Apache-2.0

package drover

import "github.com/drover-agents/drover/event"

// Stats count what happened during an evaluation.
type Stats struct {
	// Prompts are the messages that the agent was given, the first one included.
	Prompts int `json:"prompts"`
	// ToolCalls are the calls that have ended, however they did, also those of subagents.
	ToolCalls int `json:"toolCalls"`
	// Subagents are those that were started.
	Subagents int `json:"subagents"`
	// Compactions is how often the agent shortened its memory of the conversation.
	Compactions int `json:"compactions"`
	// HookErrors is how often something failed that the agent waited for: a feedback, a completion check.
	// The run goes on; the Logger has heard why.
	HookErrors int `json:"hookErrors"`
}

func (s *Stats) add(more Stats) {
	s.Prompts += more.Prompts
	s.ToolCalls += more.ToolCalls
	s.Subagents += more.Subagents
	s.Compactions += more.Compactions
	s.HookErrors += more.HookErrors
}

// SubagentStarted says that the agent has started another one.
type SubagentStarted struct {
	ID   string `json:"agentId"`
	Type string `json:"type,omitzero"`
}

// EventKind implements [event.Payload].
func (SubagentStarted) EventKind() event.Kind { return "subagent:started" }

// SubagentStopped says that a subagent wants to stop. It may still go on, and stop again.
type SubagentStopped struct {
	ID   string `json:"agentId"`
	Type string `json:"type,omitzero"`
	// Text is the last that it said.
	Text string `json:"text,omitzero"`
}

// EventKind implements [event.Payload].
func (SubagentStopped) EventKind() event.Kind { return "subagent:stopped" }

// Compacting says that the agent is about to shorten its memory of the conversation.
type Compacting struct {
	// Trigger is "auto" or "manual".
	Trigger      string `json:"trigger"`
	Instructions string `json:"instructions,omitzero"`
}

// EventKind implements [event.Payload].
func (Compacting) EventKind() event.Kind { return "context:compacting" }
