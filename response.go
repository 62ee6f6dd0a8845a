// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/session"
)

// A Response is the answer to a prompt.
type Response[T any] struct {
	// Output is the answer as the prompt's type has it.
	Output T
	// Summary has everything about the evaluation that does not depend on the type.
	Summary
}

// String is the answer, and the line of the summary below it.
func (r Response[T]) String() string {
	return strings.TrimSpace(fmt.Sprintf("%+v", r.Output)) + "\n" + r.Summary.String()
}

// A Summary is the end of an evaluation. That of a failed one is in its [EvaluationError].
type Summary struct {
	// PromptName is the name of the prompt.
	PromptName string
	// Text is the last message of the agent.
	Text string
	// Structured is the JSON of the answer, or nil where the prompt asks for text.
	Structured json.RawMessage
	// Status is how the last turn ended, and StopReason why the model stopped in it, in the agent's own words: "end_turn",
	// "tool_use", "max_tokens". It is that of the model's last answer in the turn, and empty if the turn has no answer. An
	// agent that succeeds without a word has stopped with "end_turn".
	Status     event.DoneStatus
	StopReason string
	// Usage is the consumption of all turns and attempts.
	Usage event.Usage
	// Duration is how long it took, and APIDuration how long the model took of that, where it is known.
	Duration, APIDuration time.Duration
	// Turns is the number of model calls of the main agent.
	Turns int
	// RunID names the run in the session and in traces.
	RunID string
	// SessionID is the agent's name for the conversation, and ResumeToken what continues it.
	SessionID, ResumeToken string
	// NotStored is why the conversation could not be stored. ResumeToken is empty then.
	NotStored string
	// Completion is the checker's last result. Without a checker it is done.
	Completion guard.Completion
	// Rounds is how often the agent was sent back because it was not done, Repairs how often because its
	// answer did not fit, and Expansions how often the run began again to show hidden sections.
	Rounds, Repairs, Expansions int
	// Attempts is how often it was tried.
	Attempts int
	// Stats count what happened on the way.
	Stats Stats
	// Cleanup is why the agent could not be ended in order, or its files could not be removed, after the
	// evaluation. Nil means that nothing is left. It changes neither the answer nor the error, which wraps it.
	Cleanup error
	// NotRecorded is why the [Recorder] could not keep the run whole. It changes neither the answer nor the error.
	NotRecorded error
	// Session has everything that happened.
	Session *session.Session
	// Transcript is the transcript of the agent, or nil if it is disabled.
	Transcript *Transcript
}

// String is one line: the prompt, how its evaluation ended, and what it consumed. It has neither the text nor the answer.
func (s Summary) String() string {
	text := fmt.Sprintf("%s: %s in %s, %s, %s", cmp.Or(s.PromptName, "evaluation"), cmp.Or(s.Status, "not begun"), s.Duration.Round(time.Millisecond), safetext.Plural(s.Turns, "model call"), s.Usage)
	if !s.Completion.Done || s.Completion.Skipped {
		text += "; " + strings.Join(strings.Fields(s.Completion.String()), " ")
	}
	if s.Cleanup != nil {
		text += "; the cleanup failed: " + s.Cleanup.Error()
	}
	if s.NotRecorded != nil {
		text += "; not recorded whole: " + s.NotRecorded.Error()
	}
	return text
}

// CostUSD is what the model cost, as far as it is known.
func (s *Summary) CostUSD() float64 { return s.Usage.TotalCostUSD() }

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
	// The run continues; the reason is logged.
	HookErrors int `json:"hookErrors"`
}

// String lists the counts that are not zero.
func (s Stats) String() string {
	var counts []string
	for _, c := range []struct {
		n    int
		unit string
	}{{s.Prompts, "prompt"}, {s.ToolCalls, "tool call"}, {s.Subagents, "subagent"}, {s.Compactions, "compaction"}, {s.HookErrors, "failed hook"}} {
		if c.n > 0 {
			counts = append(counts, safetext.Plural(c.n, c.unit))
		}
	}
	return cmp.Or(strings.Join(counts, ", "), "nothing happened")
}

func (s *Stats) add(more Stats) {
	s.Prompts += more.Prompts
	s.ToolCalls += more.ToolCalls
	s.Subagents += more.Subagents
	s.Compactions += more.Compactions
	s.HookErrors += more.HookErrors
}

// SubagentStarted reports that the agent has started a subagent.
type SubagentStarted struct {
	ID   string `json:"agentId"`
	Type string `json:"type,omitzero"`
}

// EventKind implements [event.Payload].
func (SubagentStarted) EventKind() event.Kind { return "subagent:started" }

// String is the type of the subagent, or its id.
func (s SubagentStarted) String() string { return cmp.Or(s.Type, s.ID) }

// SubagentStopped reports that a subagent wants to stop. It may still continue, and stop again.
type SubagentStopped struct {
	ID   string `json:"agentId"`
	Type string `json:"type,omitzero"`
	// Text is its last message.
	Text string `json:"text,omitzero"`
}

// EventKind implements [event.Payload].
func (SubagentStopped) EventKind() event.Kind { return "subagent:stopped" }

// String is the type of the subagent, or its id, and its last message, which may be cut.
func (s SubagentStopped) String() string {
	if s.Text == "" {
		return cmp.Or(s.Type, s.ID)
	}
	return cmp.Or(s.Type, s.ID) + ": " + event.Text{Content: s.Text}.String()
}

// Compacting reports that the agent is about to shorten its memory of the conversation.
type Compacting struct {
	// Trigger is "auto" or "manual".
	Trigger      string `json:"trigger"`
	Instructions string `json:"instructions,omitzero"`
}

// EventKind implements [event.Payload].
func (Compacting) EventKind() event.Kind { return "context:compacting" }

// String is why: "auto" or "manual".
func (c Compacting) String() string { return c.Trigger }

// CompletionFailed reports that a completion check has found that the task is not done.
type CompletionFailed struct {
	// Round counts the failed checks of the evaluation, from 1.
	Round int `json:"round"`
	// SentBack is true if the agent reads Feedback and continues. Otherwise it has been sent back as often as allowed.
	SentBack bool `json:"sentBack"`
	// Feedback is what is missing.
	Feedback string `json:"feedback,omitzero"`
}

// EventKind implements [event.Payload].
func (CompletionFailed) EventKind() event.Kind { return "completion:failed" }

// String is the round and the feedback: "round 1, sent back: Create a.txt".
func (c CompletionFailed) String() string {
	text := fmt.Sprintf("round %d", c.Round)
	if c.SentBack {
		text += ", sent back"
	}
	if missing := guard.Incomplete(c.Feedback).Missing(); missing != "" {
		text += ": " + missing
	}
	return text
}
