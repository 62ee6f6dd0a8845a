// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"log/slog"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safelog"
)

// A Key is the key of a value in a call's context. The packages that run tools offer what handlers may need
// through keys of their own, such as the session: each defines a key and an accessor beside it, so
// that this package need not know them. Make a key once, as a package variable.
type Key[T any] struct{ name string }

// NewKey makes a key that is like no other. The name is for people.
func NewKey[T any](name string) *Key[T] { return &Key[T]{name} }

// With returns a context that holds the value.
func (k *Key[T]) With(ctx context.Context, value T) context.Context {
	return context.WithValue(ctx, k, value)
}

// From returns the value, and whether there is one.
func (k *Key[T]) From(ctx context.Context) (T, bool) {
	v, ok := ctx.Value(k).(T)
	return v, ok
}

// String returns the name of the key.
func (k *Key[T]) String() string { return "tool.Key(" + k.name + ")" }

// running is what a handler's context knows of its call.
type running struct {
	context.Context
	call        *Call
	registry    *Registry // nil for a call of the tool itself
	reservation *reservation
}

type runningKey struct{}

func (r *running) Value(key any) any {
	if _, ok := key.(runningKey); ok {
		return r
	}
	return r.Context.Value(key)
}

func runningFrom(ctx context.Context) *running {
	r, _ := ctx.Value(runningKey{}).(*running)
	return r
}

// CallFrom returns the call that a handler is answering, and whether there is one.
func CallFrom(ctx context.Context) (Call, bool) {
	if r := runningFrom(ctx); r != nil {
		return *r.call, true
	}
	return Call{}, false
}

// Detach returns the context for work that may outlive the call in which it begins. It has the values of
// ctx without its end. The call is known in it, to [CallFrom], [Progress] and [Logger], until ctx ends.
func Detach(ctx context.Context) context.Context {
	return &detached{context.WithoutCancel(ctx), ctx}
}

type detached struct {
	context.Context
	call context.Context
}

func (d *detached) Value(key any) any {
	if _, ok := key.(runningKey); ok && d.call.Err() != nil {
		return nil
	}
	return d.Context.Value(key)
}

var candidateKey = NewKey[*Tool]("candidate")

// Candidate returns the tool that a registry is about to run, in the context that it gives to its
// [Decider] and to its [Around]. A call can name a tool in many ways; this is the one that would run.
func Candidate(ctx context.Context) (*Tool, bool) {
	t, _ := candidateKey.From(ctx)
	return t, t != nil
}

var progressKey = NewKey[func(ctx context.Context, done, total float64, message string) error]("progress")

// WithProgress returns a context in which [Progress] also calls fn. It is for servers of tools.
func WithProgress(ctx context.Context, fn func(ctx context.Context, done, total float64, message string) error) context.Context {
	return progressKey.With(ctx, fn)
}

// Progress reports to the caller how far a call has come. A total of zero means that it is not known; message may be empty.
// Outside a call, or without a receiver, it does nothing; it fails when the call is over.
func Progress(ctx context.Context, done, total float64, message string) error {
	r := runningFrom(ctx)
	if r == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.registry != nil {
		r.registry.emit(event.ToolProgress{ID: r.call.ID, Progress: done, Total: total, Message: message})
	}
	if fn, ok := progressKey.From(ctx); ok {
		return fn(ctx, done, total, message)
	}
	return nil
}

// Logger returns the logger of a call. Its lines name the call; in a registry they also are events.
// Outside a call it discards.
func Logger(ctx context.Context) *slog.Logger {
	r := runningFrom(ctx)
	if r == nil || r.registry == nil {
		return safelog.Logger(nil)
	}
	next := r.registry.opts.Logger.Handler().WithAttrs([]slog.Attr{slog.String("tool", r.call.Name), slog.String("call", string(r.call.ID))})
	return slog.New(&callLog{registry: r.registry, call: r.call.ID, next: next})
}
