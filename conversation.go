// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"errors"
	"log/slog"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
)

// A Conversation is a prompt and what is said after its answer. It keeps its agent until it is closed.
// It says one thing at a time: whoever says another meanwhile gets [agent.ErrBusy].
type Conversation[T any] struct {
	e *evaluation
}

// Converse makes a conversation that begins with a prompt. Nothing is started before something is said, or
// [Conversation.Prepare] is called. It must be closed.
func Converse[T any](a agent.Adapter, p *prompt.Prompt[T], opts *Options) *Conversation[T] {
	return &Conversation[T]{newEvaluation(a, p, parser(p), opts)}
}

// Prepare renders the prompt and starts the agent, which then waits: the first answer comes many times
// sooner. It need not be called: the agent also starts when something is said.
func (c *Conversation[T]) Prepare(ctx context.Context) error { return c.e.warm(ctx) }

// Begin says the prompt and waits for the answer.
func (c *Conversation[T]) Begin(ctx context.Context) (*Response[T], error) {
	return c.begin(ctx, silently)
}

// Send sends another message and waits for the answer, which has the prompt's type too. In a conversation that has not
// begun, the prompt is sent first, in the same message.
func (c *Conversation[T]) Send(ctx context.Context, text string) (*Response[T], error) {
	return c.send(ctx, text, silently)
}

// Stream is Send with the events of the turn. An empty text says the prompt.
func (c *Conversation[T]) Stream(ctx context.Context, text string) *Run[T] {
	return &Run[T]{stream: func(emit emitFunc) (*Response[T], error) {
		if text == "" {
			return c.begin(ctx, emit)
		}
		return c.send(ctx, text, emit)
	}}
}

// ErrInterrupted is why a turn ended that [Conversation.Interrupt] has ended.
var ErrInterrupted = errors.New("drover: the turn was interrupted\n  next: say something else, or close the conversation")

// Interrupt ends the turn that is under way, and reports whether there was one. The error of the turn matches
// [ErrInterrupted], and the conversation can go on.
func (c *Conversation[T]) Interrupt() bool { return c.e.stop(ErrInterrupted) }

// ResumeToken continues the conversation elsewhere: give it to [Options] as Resume. It is empty as long as
// nothing was answered.
func (c *Conversation[T]) ResumeToken() string { return c.e.resumeToken() }

// Fork is a conversation that has said the same so far, and goes on by itself: what this one says later, or in a
// turn that is under way, is not in it if the adapter is an [agent.Snapshotter]. Its session is a clone; the folder
// that its agent works in is the same. Budget limits the fork alone; with nil it shares the budget of this
// conversation, and what either consumes counts for both. It must be closed too.
func (c *Conversation[T]) Fork(budget *guard.Budget) (*Conversation[T], error) {
	forked, err := c.e.fork(budget)
	if err != nil {
		return nil, err
	}
	return &Conversation[T]{forked}, nil
}

// Close ends what is under way and the agent, and waits until nothing of it is left. It may be called twice. In a loop
// over events of the conversation it fails with [ErrReading], after five seconds: leave the loop, then call it again.
func (c *Conversation[T]) Close() error { return c.e.close() }

// closed closes the conversation after its only turn. A failed cleanup does not replace the answer or the error
// of the turn: it is logged, and it is in the summary of either.
func (c *Conversation[T]) closed(resp *Response[T], err error) error {
	closing := c.Close()
	if closing == nil {
		return err
	}
	c.e.log(context.Background(), slog.LevelError, logCleanup, slog.Any("error", closing))
	if resp != nil {
		resp.Cleanup = errors.Join(resp.Cleanup, closing)
	}
	if failure, ok := errors.AsType[*EvaluationError](err); ok {
		return failure.withCleanup(closing)
	}
	return err
}

func silently(event.Event) bool { return true }

func (c *Conversation[T]) begin(ctx context.Context, emit emitFunc) (*Response[T], error) {
	return typed[T](c.e.evaluate(ctx, emit))
}

func (c *Conversation[T]) send(ctx context.Context, text string, emit emitFunc) (*Response[T], error) {
	return typed[T](c.e.proceed(ctx, text, emit))
}
