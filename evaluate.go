// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
)

// Evaluate has an agent answer a prompt, and waits for the answer. Nil options are the defaults.
//
// The error is an [*EvaluationError], whatever went wrong. When ctx ends, or the deadline passes, the turn
// is interrupted, and the agent is gone when Evaluate returns. An answer is returned without an error even if
// the cleanup after it failed: see [Summary.Cleanup].
func Evaluate[T any](ctx context.Context, a agent.Adapter, p *prompt.Prompt[T], opts *Options) (*Response[T], error) {
	run := Stream(ctx, a, p, opts)
	for range run.Events() { // the response says how it ended
	}
	return run.Response()
}

// Stream is [Evaluate] with the events of the run. Nothing happens before somebody reads them.
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
var ErrReading = errors.New("drover: the events of this run are being read\n  next: leave that loop first")

var errNotRun = errors.New("drover: the response is there when the events have been read\n  next: range over Events first")

// Response is the answer, once the events have been read.
func (r *Run[T]) Response() (*Response[T], error) {
	if !r.over.Load() {
		return nil, errNotRun
	}
	return r.response, r.err
}

// typed makes the response of an outcome.
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
