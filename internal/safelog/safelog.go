// SPDX-License-Identifier: Apache-2.0

// Package safelog protects a program from its user's log handler: a handler that panics loses only its record.
package safelog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// Logger returns a logger whose handler does not panic. It discards if l is nil.
func Logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	if _, ok := l.Handler().(*handler); ok {
		return l
	}
	return slog.New(&handler{l.Handler()})
}

type handler struct{ next slog.Handler }

// Enabled implements slog.Handler. A panic means no.
func (h *handler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() {
		if recover() != nil {
			enabled = false
		}
	}()
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler. A panic is an error. The advice of an error is an attribute of its own.
func (h *handler) Handle(ctx context.Context, record slog.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the log handler panicked: %v", p)
		}
	}()
	record.Attrs(func(a slog.Attr) bool {
		next := adviceOf(a.Value.Any())
		if next != "" {
			record = record.Clone()
			record.AddAttrs(slog.String("next", next))
		}
		return next == ""
	})
	return h.next.Handle(ctx, record)
}

// adviceOf is the advice of an error, whose methods may panic, or "".
func adviceOf(v any) (next string) {
	defer func() { _ = recover() }()
	var adviser interface{ Advice() string } // of package advice, which this one does not import
	if err, ok := v.(error); ok && errors.As(err, &adviser) {
		next = adviser.Advice()
	}
	return next
}

// WithAttrs implements slog.Handler. A panic leaves the attributes out.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func() slog.Handler { return h.next.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler. A panic leaves the group out.
func (h *handler) WithGroup(name string) slog.Handler {
	return h.with(func() slog.Handler { return h.next.WithGroup(name) })
}

func (h *handler) with(change func() slog.Handler) (changed slog.Handler) {
	defer func() {
		if recover() != nil {
			changed = h
		}
	}()
	return &handler{change()}
}
