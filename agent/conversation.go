// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"iter"

	"github.com/drover-agents/drover/event"
)

// An Opener is an adapter that keeps its agent over several prompts.
type Opener interface {
	Adapter
	// Open starts the agent for a request, whose Prompt is not sent. It fails as Run does where a run cannot
	// begin. ctx bounds the start alone.
	Open(ctx context.Context, req Request) (Conversation, error)
}

// A Conversation is an agent that waits for prompts.
type Conversation interface {
	// Send has the agent work on a prompt, with what [Adapter.Run] promises. When ctx ends the turn is
	// interrupted, and the agent waits for the next prompt, if it still can: else Send fails from then on.
	// One prompt at a time: a second one fails with [ErrBusy].
	Send(ctx context.Context, prompt string) iter.Seq2[event.Event, error]
	// Close ends the agent and waits until nothing of it is left. It may be called twice, and while a prompt
	// is worked on.
	Close() error
}

// A Snapshotter is an adapter whose conversations can be forked as they are now.
type Snapshotter interface {
	Adapter
	// Snapshot is a token for the conversation that the request resumes, as it is now: what is said there later
	// is not in a conversation that resumes it. The conversation that goes on from it always has a token of its own.
	// Nothing is started. A conversation that the adapter does not keep itself has the token that it had.
	Snapshot(ctx context.Context, req Request) (string, error)
}

// A Resetter is a conversation that can start again from scratch with the same agent.
type Resetter interface {
	Conversation
	// Reset has the agent forget everything that was said. What was fixed when it was opened stays, and so do
	// the limits, and what they have used up. The next prompt begins a conversation with a token of its own.
	Reset(ctx context.Context) error
}

// A Warmer is a [Conversation] that can run its cold-start work before the first prompt. The conversation stays as it
// is, and no model is called. While a prompt is worked on it fails with [ErrBusy].
type Warmer interface {
	Conversation
	WarmUp(ctx context.Context) error
}

// Talk is a conversation as an adapter, so that a [Runner] can hold it: each run is one more prompt. The
// requests of such runs have a Prompt; everything else was said when the conversation was opened.
func Talk(a Adapter, c Conversation) Adapter { return &talk{Adapter: a, conversation: c} }

type talk struct {
	Adapter
	conversation Conversation
}

func (t *talk) Run(ctx context.Context, req Request) iter.Seq2[event.Event, error] {
	return t.conversation.Send(ctx, req.Prompt)
}
