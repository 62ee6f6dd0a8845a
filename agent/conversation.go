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
	// Close ends the agent and waits until nothing of it is left. It may be called twice, and while a prompt is worked on.
	Close() error
}

// A Snapshotter is an adapter whose conversations can be forked as they are now.
type Snapshotter interface {
	Adapter
	// Snapshot is a token for the conversation that the request resumes, as it is now: a conversation
	// that resumes it does not have later messages, and always has a token of its own. It starts no agent. A conversation that the adapter does not keep itself has the token that it had.
	Snapshot(ctx context.Context, req Request) (string, error)
}

// A Resetter is a conversation that can start again from scratch with the same agent.
type Resetter interface {
	Conversation
	// Reset makes the agent forget all messages. The settings of the conversation stay, and so do the limits and the
	// usage so far. The next prompt begins a conversation with a token of its own.
	Reset(ctx context.Context) error
}

// A Warmer is a [Conversation] that can run its cold-start work before the first prompt. The conversation stays as it
// is, and no model is called. While a prompt is worked on it fails with [ErrBusy].
type Warmer interface {
	Conversation
	WarmUp(ctx context.Context) error
}

// ConversationAdapter returns a conversation as an adapter, so that a [Runner] can hold it: each run is one more prompt. The
// requests of such runs have a Prompt; all other fields were set when the conversation was opened.
func ConversationAdapter(a Adapter, c Conversation) Adapter {
	return &conversationAdapter{Adapter: a, conversation: c}
}

type conversationAdapter struct {
	Adapter
	conversation Conversation
}

func (t *conversationAdapter) Run(ctx context.Context, req Request) iter.Seq2[event.Event, error] {
	return t.conversation.Send(ctx, req.Prompt)
}
