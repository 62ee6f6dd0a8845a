// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drover-agents/drover/event"
)

// Hooks are called at certain moments of a run. Each of them may be nil. They are called by several
// goroutines. An adapter that cannot call one of them refuses the request.
//
// A hook that fails or panics never ends the run. A Rewrite, Answering or Stopping that fails refuses. The adapter reports
// the error in the stream, as an [event.Error] that is recoverable.
type Hooks struct {
	// Rewrite may replace the input of a call before it is decided. A nil result leaves the input unchanged. It decides
	// nothing: the Host decides about the new input. If Rewrite fails the call is denied; the model reads the error.
	Rewrite func(ctx context.Context, call event.ToolCall) (json.RawMessage, error)
	// Submitted is called with each prompt. Its text is given to the model beside the prompt.
	Submitted func(ctx context.Context, s Submission) (more string, err error)
	// CallEnded is called after each call that was made, before the model reads its result. Its text is given to
	// the model beside the result. It is not called for calls that were denied or that the agent itself refused;
	// see [event.ToolResult].
	CallEnded func(ctx context.Context, end CallEnd) (more string, err error)
	// BatchEnded is called when all calls of one message of the model have ended, before the model reads their
	// results. It is not called if one of them was a structured answer that counts: the model reads no results
	// then. Only a [Batcher] calls it.
	BatchEnded func(ctx context.Context)
	// Answering is asked about the structured answer before it counts. If it returns a text, or fails, the
	// answer does not count, and the model reads the text or the error. Request.MaxRefusals bounds how often.
	Answering func(ctx context.Context, a Answer) (refusal string, err error)
	// Stopping is asked when the agent wants to stop without a structured answer. If it returns a text, or fails, the
	// agent reads why and goes on. Request.MaxRefusals bounds how often.
	Stopping func(ctx context.Context, s Stop) (refusal string, err error)
	// SubagentStarted and SubagentStopped are called when a subagent starts and wants to stop.
	SubagentStarted, SubagentStopped func(ctx context.Context, a Subagent)
	// Compacting is called before the agent shortens its memory of the conversation.
	Compacting func(ctx context.Context, c Compaction)
}

// A Batcher is an adapter that calls [Hooks.BatchEnded].
type Batcher interface {
	Adapter
	// CallsBatchEnded does nothing.
	CallsBatchEnded()
}

// A Submission is a prompt that is given to the agent.
type Submission struct {
	Prompt    string
	SessionID string
	Dir       string
}

// A CallEnd is a call that was made, and how it ended.
type CallEnd struct {
	event.ToolCall
	Status event.ToolStatus
	// Output is what the tool returned, in the agent's own form.
	Output json.RawMessage
	// Error is what the model reads of a call that failed.
	Error string
	// Duration is how long the call took. Zero means that it was not measured.
	Duration time.Duration
}

// An Answer is a structured answer that the model wants to give.
type Answer struct {
	Output    json.RawMessage // as the request's schema has it
	CallID    event.CallID
	SessionID string
}

// A Stop is the wish of an agent to stop.
type Stop struct {
	SessionID string
	// Text is the last message of the agent.
	Text string
	// Again is true after an earlier refusal.
	Again bool
	// Answered is true if a structured answer was accepted: a refusal then has no effect.
	Answered bool
}

// A Subagent is an agent that the agent has started.
type Subagent struct {
	ID, Type string
	// Text is its last message, when it stops.
	Text string
	// Transcript is the file of its conversation, when it stops.
	Transcript string
}

// A Compaction is the shortening of a conversation.
type Compaction struct {
	// Trigger is "auto" or "manual".
	Trigger      string
	Instructions string
}
