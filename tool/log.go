// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

// A callLog makes events of what a handler logs, and passes it on to the registry's logger.
type callLog struct {
	registry *Registry
	call     event.CallID
	next     slog.Handler
	attrs    []slog.Attr // their keys carry the groups they are in
	group    string
}

// Enabled implements slog.Handler. Events are made of every level from info on.
func (l *callLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level) || l.registry.opts.Emit != nil && level >= slog.LevelInfo
}

// Handle implements slog.Handler.
func (l *callLog) Handle(ctx context.Context, rec slog.Record) error {
	attrs := map[string]json.RawMessage{}
	for _, a := range l.attrs {
		addAttr(attrs, "", a)
	}
	rec.Attrs(func(a slog.Attr) bool {
		addAttr(attrs, l.group, a)
		return true
	})
	if len(attrs) == 0 {
		attrs = nil
	}
	l.registry.emit(event.ToolLog{ID: l.call, Level: strings.ToLower(rec.Level.String()), Message: rec.Message, Attrs: attrs})
	if !l.next.Enabled(ctx, rec.Level) {
		return nil
	}
	return l.next.Handle(ctx, rec)
}

// WithAttrs implements slog.Handler.
func (l *callLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *l
	c.next = l.next.WithAttrs(attrs)
	c.attrs = slices.Clone(l.attrs)
	for _, a := range attrs {
		a.Key = l.group + a.Key
		c.attrs = append(c.attrs, a)
	}
	return &c
}

// WithGroup implements slog.Handler.
func (l *callLog) WithGroup(name string) slog.Handler {
	c := *l
	c.next = l.next.WithGroup(name)
	if name != "" {
		c.group = l.group + name + "."
	}
	return &c
}

// addAttr puts an attribute under "group.key". What has no JSON form is kept as text.
func addAttr(to map[string]json.RawMessage, prefix string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range value.Group() {
			addAttr(to, prefix, inner)
		}
		return
	}
	v := value.Any()
	if err, ok := v.(error); ok {
		v = advice.Text(err)
	}
	raw, err := plainjson.TryMarshal(v)
	if err != nil {
		raw, _ = plainjson.TryMarshal(value.String()) // a string always has a JSON form
	}
	to[prefix+a.Key] = raw
}
