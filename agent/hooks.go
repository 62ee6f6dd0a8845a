// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drover-agents/drover/event"
)

// Hooks are asked and told at certain moments of a run. Each of them may be nil. They are called by several
// goroutines. An adapter that cannot ask one of them refuses the request.
//
// A hook that fails or panics never ends the run. Rewrite, Answering and Stopping then say no. The adapter reports
// the error in the stream, as an [event.Error] that is recoverable.
type Hooks struct {
	// Rewrite may replace the input of a call, before anybody decides about it. Nil leaves it as it is. It
	// decides nothing: whether the call is made is for the Host to say, about the new input. A Rewrite that
	// fails keeps the call from being made; the model reads the error.
	Rewrite func(ctx context.Context, call event.ToolCall) (json.RawMessage, error)
	// Submitted is told of each prompt. What it returns is given to the model beside the prompt.
	Submitted func(ctx context.Context, s Submission) (more string, err error)
	// CallEnded is told of each call that was made, before the model reads its result. What it returns is
	// given to the model beside that. Calls that were denied, and calls that the agent itself refused, are
	// not told here; see [event.ToolResult].
	CallEnded func(ctx context.Context, end CallEnd) (more string, err error)
	// BatchEnded is called when all calls of one message of the model have ended, before the model reads their
	// results. It is not called if one of them was a structured answer that counts: the model reads no results
	// then. Only a [Batcher] calls it.
	BatchEnded func(ctx context.Context)
	// Answering is asked about the structured answer before it counts. If it returns a text, or fails, the
	// answer does not count, and the model reads why, word for word. Request.MaxRefusals bounds how often.
	Answering func(ctx context.Context, a Answer) (refusal string, err error)
	// Stopping is asked when the agent wants to stop without a structured answer. If it returns a text, or fails, the
	// agent reads why and goes on. Request.MaxRefusals bounds how often.
	Stopping func(ctx context.Context, s Stop) (refusal string, err error)
	// SubagentStarted and SubagentStopped are told of subagents.
	SubagentStarted, SubagentStopped func(ctx context.Context, a Subagent)
	// Compacting is told before the agent shortens its memory of the conversation.
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
	// Text is the last that the agent said.
	Text string
	// Again says that it goes on since an earlier refusal.
	Again bool
	// Answered says that a structured answer was accepted: a refusal has then no effect.
	Answered bool
}

// A Subagent is an agent that the agent has started.
type Subagent struct {
	ID, Type string
	// Text is the last that it said, when it stops.
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
