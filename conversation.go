// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
)

// Evaluate has an agent answer a prompt, and waits for the answer. Nil options are the defaults.
//
// The error is an [*EvaluationError], whatever went wrong. When ctx ends, or the deadline passes, the turn
// is interrupted, and the agent is gone when Evaluate returns. An answer is returned without an error even if
// the cleanup after it failed: see [Summary.Cleanup].
func Evaluate[T any](ctx context.Context, a agent.Adapter, p *prompt.Prompt[T], opts *Options) (*Response[T], error) {
	run := Stream(ctx, a, p, opts)
	for range run.Events() { // the response has the end
	}
	return run.Response()
}

// Ask has an agent answer one question about the current folder, and waits for the answer: [Evaluate] with a prompt of one
// text. The answer is a T, which with string is the text of the agent.
//
// The agent reads; a call that changes something is denied. Options replace these defaults: Dir or Workspace the
// current folder, which a folder of the adapter replaces too, and Permissions the rule that only reading is allowed.
func Ask[T any](ctx context.Context, a agent.Adapter, question string, opts *Options) (*Response[T], error) {
	p, err := prompt.FromText[T](question)
	if err != nil {
		return nil, notBegun("ask", err)
	}
	own, err := opts.forQuestion(a)
	if err != nil {
		return nil, notBegun("ask", err)
	}
	return Evaluate(ctx, a, p, own)
}

// Stream is [Evaluate] with the events of the run. The run starts when the events are read.
func Stream[T any](ctx context.Context, a agent.Adapter, p *prompt.Prompt[T], opts *Options) *Run[T] {
	c := Converse(a, p, opts)
	return &Run[T]{stream: func(emit emitFunc) (resp *Response[T], err error) {
		defer func() { err = c.closed(resp, err) }() // also when the reader's loop panics, or ends its goroutine
		return c.begin(ctx, emit)
	}}
}

// A Run is an evaluation, or one turn of a conversation, and its events.
type Run[T any] struct {
	stream func(emitFunc) (*Response[T], error)

	begun, over atomic.Bool
	response    *Response[T] // set before over, as err is
	err         error
}

type emitFunc = func(event.Event) bool

// Events runs the evaluation and yields what happens. The last event is an [event.Done]. Leaving the loop
// ends the agent. It can be read once: a second loop gets [ErrReading] while the first is under way, and nothing
// after it. The error, which comes alone and last, is that of Response.
func (r *Run[T]) Events() iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if !r.begun.CompareAndSwap(false, true) {
			if !r.over.Load() {
				yield(event.Event{}, ErrReading)
			}
			return
		}
		left := false
		r.response, r.err = r.stream(func(e event.Event) bool {
			left = left || !yield(e, nil)
			return !left
		})
		r.over.Store(true)
		if r.err != nil && !left {
			yield(event.Event{}, r.err)
		}
	}
}

// ErrReading is the error of a second loop over the events of a run, also inside of the first, and of a
// [Conversation.Close] inside of a loop.
var ErrReading = advice.Wrap(errors.New("drover: the events of this run are being read"), "leave that loop first")

var errNotRun = advice.Wrap(errors.New("drover: the response is there when the events have been read"), "range over Events first")

// Response is the answer, once the events have been read.
func (r *Run[T]) Response() (*Response[T], error) {
	if !r.over.Load() {
		return nil, errNotRun
	}
	return r.response, r.err
}

func typed[T any](o *outcome, err error) (*Response[T], error) {
	if err != nil {
		return nil, err
	}
	answer, _ := o.value.(T)
	return &Response[T]{Output: answer, Summary: o.Summary}, nil
}

// parser is the prompt's own reading of an answer.
func parser[T any](p *prompt.Prompt[T]) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) { return p.Parse(raw) }
}

// A Conversation is a prompt and the messages after its answer. It keeps its agent until it is closed.
// It sends one message at a time: a caller that sends another one meanwhile gets [agent.ErrBusy].
type Conversation[T any] struct {
	e *evaluation
}

// Converse makes a conversation that begins with a prompt. The agent starts with the first message, or when
// [Conversation.Prepare] is called. It must be closed.
func Converse[T any](a agent.Adapter, p *prompt.Prompt[T], opts *Options) *Conversation[T] {
	return &Conversation[T]{newEvaluation(a, p, parser(p), opts)}
}

// Prepare renders the prompt and starts the agent, which then waits: the first answer comes many times
// sooner. It is optional: otherwise the agent starts with the first message.
func (c *Conversation[T]) Prepare(ctx context.Context) error { return c.e.warm(ctx) }

// Begin sends the prompt and waits for the answer.
func (c *Conversation[T]) Begin(ctx context.Context) (*Response[T], error) {
	return c.begin(ctx, silently)
}

// Send sends another message and waits for the answer, which has the prompt's type too. In a conversation that has not
// begun, the prompt is sent first, in the same message.
func (c *Conversation[T]) Send(ctx context.Context, text string) (*Response[T], error) {
	return c.send(ctx, text, silently)
}

// Stream is Send with the events of the turn. An empty text sends the prompt.
func (c *Conversation[T]) Stream(ctx context.Context, text string) *Run[T] {
	return &Run[T]{stream: func(emit emitFunc) (*Response[T], error) {
		if text == "" {
			return c.begin(ctx, emit)
		}
		return c.send(ctx, text, emit)
	}}
}

// ErrInterrupted is why a turn ended that [Conversation.Interrupt] has ended.
var ErrInterrupted = advice.Wrap(errors.New("drover: the turn was interrupted"), "send another message, or close the conversation")

// Interrupt ends the turn that is under way, and reports whether there was one. The error of the turn matches
// [ErrInterrupted], and the conversation can go on.
func (c *Conversation[T]) Interrupt() bool { return c.e.stop(ErrInterrupted) }

// ResumeToken continues the conversation elsewhere: set it as Resume of [Options]. It is empty before the first answer.
func (c *Conversation[T]) ResumeToken() string { return c.e.resumeToken() }

// Fork returns a conversation with the same history that continues independently. If the adapter is an [agent.Snapshotter],
// later messages of this one, and those of a turn under way, are not in it. Its session is a clone; the working directory is
// the same. Budget limits the fork alone; with nil both conversations share one budget. It must be closed too.
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
