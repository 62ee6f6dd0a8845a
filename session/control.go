// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

// Seeded records that [Seed] has given a slice new values.
type Seeded struct {
	Slice  event.Kind
	values any // []S, or json.RawMessage from a store
}

// Cleared records that [Clear] has emptied a slice.
type Cleared struct {
	Slice event.Kind `json:"slice"`
}

// Reset records that [Session.Reset] has emptied all slices of policy State.
type Reset struct{}

// Restored records that [Session.Restore] has put the state back to that after an entry.
type Restored struct {
	To int64 `json:"to"`
}

// RolledBack records that the events of transactions were taken out of the state.
type RolledBack struct {
	Txs    []int64 `json:"txs"`
	Call   string  `json:"toolUseId,omitzero"`
	Reason string  `json:"reason,omitzero"`
}

// Committed records that the events of transactions stay in the state.
type Committed struct {
	Txs  []int64 `json:"txs"`
	Call string  `json:"toolUseId,omitzero"`
}

// ReducerFailed records that a reducer failed or panicked over an entry, and that its slice is unchanged. Without a
// slice, the entry itself could not be decoded.
type ReducerFailed struct {
	Pos   int64      `json:"pos"`
	Event event.Kind `json:"event"`
	Slice event.Kind `json:"slice,omitzero"`
	Error string     `json:"error"`
	Panic bool       `json:"panic,omitzero"`
}

// EventKind implements [event.Payload].
func (Seeded) EventKind() event.Kind { return "session:seeded" }

// EventKind implements [event.Payload].
func (Cleared) EventKind() event.Kind { return "session:cleared" }

// EventKind implements [event.Payload].
func (Reset) EventKind() event.Kind { return "session:reset" }

// EventKind implements [event.Payload].
func (Restored) EventKind() event.Kind { return "session:restored" }

// EventKind implements [event.Payload].
func (RolledBack) EventKind() event.Kind { return "session:rolled_back" }

// EventKind implements [event.Payload].
func (Committed) EventKind() event.Kind { return "session:committed" }

// EventKind implements [event.Payload].
func (ReducerFailed) EventKind() event.Kind { return "session:reducer_failed" }

type seededWire struct {
	Slice  event.Kind      `json:"slice"`
	Values json.RawMessage `json:"values"`
}

// MarshalJSON writes the values as a list.
func (s Seeded) MarshalJSON() ([]byte, error) {
	values, err := plainjson.Marshal(s.values)
	if err != nil {
		return nil, err
	}
	return plainjson.Marshal(seededWire{s.Slice, values})
}

// UnmarshalJSON keeps the values as they are until the slice is folded.
func (s *Seeded) UnmarshalJSON(data []byte) error {
	var w seededWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*s = Seeded{w.Slice, w.Values}
	return nil
}

// managing are the types of this file. Those that are true change slices; the others are only records.
var managing = map[reflect.Type]bool{
	reflect.TypeFor[Seeded]():        true,
	reflect.TypeFor[Cleared]():       true,
	reflect.TypeFor[Reset]():         true,
	reflect.TypeFor[Restored]():      false,
	reflect.TypeFor[RolledBack]():    false,
	reflect.TypeFor[Committed]():     false,
	reflect.TypeFor[ReducerFailed](): false,
}

func manages(t reflect.Type) bool {
	_, ok := managing[t]
	return ok
}

// Seed replaces all values of a slice.
func Seed[S any](ctx context.Context, s *Session, values ...S) error {
	return s.manage(ctx, Seeded{sliceName[S](s), slices.Clone(values)})
}

// Clear empties a slice.
func Clear[S any](ctx context.Context, s *Session) error {
	return s.manage(ctx, Cleared{sliceName[S](s)})
}

func sliceName[S any](s *Session) event.Kind {
	s.order.Lock()
	defer s.order.Unlock()
	return wantedSlice[S](s).name
}

// Reset empties all slices of policy State. The log keeps everything.
func (s *Session) Reset(ctx context.Context) error { return s.manage(ctx, Reset{}) }

func (s *Session) manage(ctx context.Context, what event.Payload) error {
	entry, err := s.newEntry(what)
	if err != nil {
		return err
	}
	_, err = s.dispatch(ctx, entry)
	return err
}

// reportLocked puts failures of reducers into the log. One over such a report is only logged, or there would be no end.
func (s *Session) reportLocked(entry *Entry, failed []failure) {
	for _, f := range failed {
		report := ReducerFailed{Pos: entry.Pos, Event: entry.Event.Kind, Error: advice.Render(fmt.Sprint(f.err), advice.Safe(f.err))}
		if f.slice != nil {
			report.Slice = f.slice.name
		}
		_, report.Panic = errors.AsType[panicError](f.err)
		s.opts.Logger.Error("a reducer failed", "slice", report.Slice, "event", report.Event, "pos", report.Pos, "error", report.Error)
		if entry.Event.Kind == report.EventKind() {
			continue
		}
		own, _ := s.newEntry(report) // what is ours is never refused
		if err := s.appendLocked(own); err != nil {
			s.opts.Logger.Error("the failure of a reducer could not be kept", "error", err)
		}
	}
}
