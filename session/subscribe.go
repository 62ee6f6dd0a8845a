// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/drover-agents/drover/event"
)

// A Subscription hands events to a function until it is stopped.
type Subscription struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Stop ends the subscription. When it returns the function is not running and will not be called again.
// It must not be called by the function itself.
func (sub *Subscription) Stop() {
	sub.cancel()
	<-sub.done
}

// Done is closed when the subscription has ended: because it was stopped, because the session is closed
// and everything was handed over, or because the store could not be read.
func (sub *Subscription) Done() <-chan struct{} { return sub.done }

// Subscribe calls a function for each event of a type above a position, in order, one at a time, in a goroutine of its own:
// it delays no other. E may be [Entry], for all of them. A panic is logged, and the function receives the next event.
func Subscribe[E any](s *Session, after int64, handle func(pos int64, e E)) *Subscription {
	ctx, cancel := context.WithCancel(context.Background())
	sub := &Subscription{cancel, make(chan struct{})}
	go func() {
		defer close(sub.done)
		defer cancel()
		for entry, err := range s.After(ctx, after) {
			if err != nil {
				s.opts.Logger.Error("a subscription ended", "session", s.ID(), "error", err)
				return
			}
			if e, ok := eventAs[E](s, &entry); ok {
				s.protect(entry.Pos, func() { handle(entry.Pos, e) })
			}
		}
	}()
	return sub
}

func (s *Session) protect(pos int64, handle func()) {
	defer func() {
		if p := recover(); p != nil {
			s.opts.Logger.Error("a subscriber panicked", "session", s.ID(), "pos", pos, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	handle()
}

func eventAs[E any](s *Session, entry *Entry) (e E, ok bool) {
	if e, ok = any(*entry).(E); ok {
		return e, true
	}
	v := valueOf(entry.Event.Payload)
	raw, isRaw := v.(event.Extension)
	t := reflect.TypeFor[E]()
	if isRaw && raw.Kind == kindOf(t) {
		decoded, err := decodeValue(raw.Data, t)
		if err != nil {
			s.opts.Logger.Error("an event could not be decoded for a subscriber", "session", s.ID(), "pos", entry.Pos, "error", err)
			return e, false
		}
		v = decoded
	}
	e, ok = v.(E)
	return e, ok
}
