// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"encoding/json"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
)

// A Response is the answer to a prompt.
type Response[T any] struct {
	// Output is the answer as the prompt's type has it.
	Output T
	// Summary has everything about the evaluation that does not depend on the type.
	Summary
}

// A Summary is what became of an evaluation. That of a failed one is in its [EvaluationError].
type Summary struct {
	// PromptName is the name of the prompt.
	PromptName string
	// Text is the last that the agent said.
	Text string
	// Structured is the JSON of the answer, or nil where the prompt asks for text.
	Structured json.RawMessage
	// Status is how the last turn ended, and StopReason why the model stopped in it, in the agent's own words:
	// "end_turn", "tool_use", "max_tokens". It is that of the model's last answer in the turn, and empty if there is none.
	// An agent that succeeds without a word has stopped with "end_turn".
	Status     event.DoneStatus
	StopReason string
	// Usage is what was consumed, by all turns and attempts.
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
	// Completion is what the checker found at the end. It is done where there is none.
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
	// Session has everything that happened.
	Session *session.Session
	// Transcript is what the agent wrote down. Nil if that was not wanted.
	Transcript *Transcript
}

// CostUSD is what the model cost, as far as it is known.
func (s *Summary) CostUSD() float64 { return s.Usage.TotalCostUSD() }
