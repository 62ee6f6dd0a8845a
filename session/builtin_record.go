// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

// RecordTool dispatches that a tool call has ended, and what follows from it: [FileModified] for a file
// that was written, [PlanUpdated] or [PlanStepUpdated] for a change of the agent's plan. Whoever sees the
// end of a call calls it, once the transaction of the call has ended; the transaction that is in the
// context is the one around the call.
//
// It reports false for a call that was recorded already, by its CallID: the first report counts, and
// nothing is dispatched. It does not look whether the context has ended, because what happened must be
// told also then; nor is a report lost because a transaction around it was rolled back.
//
// EventID is made where it is empty, and Path of the Params of file tools, relative to Dir or else to the
// [Workspace].
func (s *Session) RecordTool(ctx context.Context, t ToolInvoked) (bool, error) {
	t = s.completed(t)
	s.order.Lock()
	defer s.order.Unlock()
	_ = s.retryLocked() // then the store has no room for this one either
	if t.CallID != "" {
		if known, err := s.isRecordedLocked(t.CallID); known || err != nil {
			return false, err
		}
	}
	if err := s.reportCallLocked(ctx, &t, t); err != nil {
		return false, err
	}
	if effect := t.effect(); effect != nil {
		return true, s.reportCallLocked(ctx, &t, effect)
	}
	return true, nil
}

// completed fills in what a report may leave out, and makes it something that every store can keep.
func (s *Session) completed(t ToolInvoked) ToolInvoked {
	if t.EventID == "" {
		t.EventID = s.NewID()
	}
	t.Params, t.Value = validJSON(t.Params), validJSON(t.Value)
	t.Output, t.Error = strings.ToValidUTF8(t.Output, "\uFFFD"), strings.ToValidUTF8(t.Error, "\uFFFD")
	if t.Path == "" && fileTools[t.Name] != 0 {
		workspace, _ := Query[Workspace](s).Latest()
		t.Path = fileOf(t.Params, cmp.Or(t.Dir, workspace.Root))
	}
	return t
}

// validJSON is raw, or the text of it as a JSON string where it is no JSON.
func validJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	text, _ := plainjson.Marshal(string(raw)) // a string always has a JSON form
	return text
}

// effect is the event that follows from a call, or nil.
func (t *ToolInvoked) effect() any {
	if !t.Success() {
		return nil
	}
	if fileTools[t.Name] == fileWritten && t.Path != "" {
		return FileModified{Path: t.Path, Tool: t.Name}
	}
	switch t.Name {
	case "TodoWrite":
		if plan, err := TodoPlan(t.Params); err == nil {
			return plan
		}
	case "TaskCreate":
		if step, ok := createdStep(t.Params, t.Value); ok {
			return step
		}
	case "TaskUpdate":
		if step, ok := changedStep(t.Params); ok {
			return step
		}
	}
	return nil
}

func (s *Session) isRecordedLocked(call string) (bool, error) {
	s.mu.RLock()
	sl := s.slices[reflect.TypeFor[ToolInvoked]()]
	s.mu.RUnlock()
	all, ok := s.itemsLocked(sl)
	if !ok {
		var err error
		if all, err = s.refoldLocked(sl); err != nil {
			return false, err
		}
	}
	_, known := all.(*items[ToolInvoked]).index(callIDOf).places.Get(call)
	return known, nil
}

// reportCallLocked appends an event about a call.
func (s *Session) reportCallLocked(ctx context.Context, t *ToolInvoked, v any) error {
	payload, err := payloadOf(v)
	if err != nil {
		return err
	}
	entry, err := s.newEntry(event.Event{Payload: payload, AgentID: t.AgentID})
	if err != nil {
		return err
	}
	if err := s.causeLocked(ctx, entry); err != nil {
		entry.Tx = 0 // what is around the call is gone; the call is not
	}
	entry.Cause = cmp.Or(t.CallID, entry.Cause)
	return s.appendLocked(entry)
}
