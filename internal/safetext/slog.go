// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler returns a slog handler that redacts messages and attributes before h sees them.
func (r *Redactor) Handler(h slog.Handler) slog.Handler { return &handler{r, h} }

type handler struct {
	r    *Redactor
	next slog.Handler
}

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, h.r.String(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.r.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.r, h.next.WithAttrs(h.r.attrs(attrs))}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.r, h.next.WithGroup(name)}
}

func (r *Redactor) attrs(in []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(in))
	for i, a := range in {
		out[i] = r.attr(a)
	}
	return out
}

// secretName matches attribute names whose text is a secret whatever it looks like.
var secretName = lazyRegexp(`(?i)(?:^|[._-])(?:api[._-]?key|token|secret|password|authorization)$`)

func (r *Redactor) attr(a slog.Attr) slog.Attr {
	key := r.String(a.Key)
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		if s := v.String(); s != "" && secretName().MatchString(a.Key) {
			return slog.String(key, r.Mark())
		} else {
			return slog.String(key, r.String(s))
		}
	case slog.KindGroup:
		return slog.Attr{Key: key, Value: slog.GroupValue(r.attrs(v.Group())...)}
	case slog.KindAny:
		return slog.Attr{Key: key, Value: r.any(v)}
	default:
		return slog.Attr{Key: key, Value: v}
	}
}

// any keeps a value as it is unless its text has a secret in it; then only the text goes on.
func (r *Redactor) any(v slog.Value) slog.Value {
	var texts []string
	switch x := v.Any().(type) {
	case []byte:
		texts = []string{string(x)}
	case error:
		texts = []string{x.Error()}
	case fmt.Stringer:
		texts = []string{x.String(), fmt.Sprintf("%+v", x)}
	default:
		texts = []string{fmt.Sprintf("%+v", x), jsonOf(x)}
	}
	for _, text := range texts {
		if out := r.String(text); out != text {
			return slog.StringValue(out)
		}
	}
	return v
}
