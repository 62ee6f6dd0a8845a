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
	"github.com/drover-agents/drover/tool"
)

// RecordTool records the end of a tool call, and what follows from it: [FileModified] for a file that was written,
// [PlanUpdated] or [PlanStepUpdated] for a change of the agent's plan. Call it after the transaction of the call has
// ended. The transaction in the context is the one around the call.
//
// It reports false for a call that was recorded already, by its CallID: the first report counts, and nothing is
// dispatched. It ignores the end of the context, and the report stays if a transaction around it is rolled back.
//
// EventID is made where it is empty. Path is taken from the Params of tools that read or write one file, relative to
// Dir or else to the [Workspace]. The catalogue of the agent that made the call defines these tools, and what
// follows from a call. Nil is for calls of tools of the program.
func (s *Session) RecordTool(ctx context.Context, t ToolInvoked, of *tool.Catalogue) (bool, error) {
	t = s.completed(t, of)
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
	for _, effect := range t.effects(of) {
		if err := s.reportCallLocked(ctx, &t, effect); err != nil {
			return true, err
		}
	}
	return true, nil
}

// completed fills in what a report may leave out, and makes it something that every store can keep.
func (s *Session) completed(t ToolInvoked, of *tool.Catalogue) ToolInvoked {
	if t.EventID == "" {
		t.EventID = s.NewID()
	}
	t.Params, t.Value = validJSON(t.Params), validJSON(t.Value)
	t.Output, t.Error = strings.ToValidUTF8(t.Output, "\uFFFD"), strings.ToValidUTF8(t.Error, "\uFFFD")
	if use := of.FilesOf(t.Name); t.Path == "" && (use == tool.ReadsFile || use == tool.WritesFile) {
		workspace, _ := Query[Workspace](s).Latest()
		if files := filesOf(of.Fields(t.Name), t.Params, cmp.Or(t.Dir, workspace.Root)); len(files) > 0 {
			t.Path, t.MorePaths = files[0], files[1:]
		}
	}
	return t
}

// validJSON returns raw, or its text as a JSON string if it is not JSON.
func validJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	text, _ := plainjson.Marshal(string(raw)) // a string always has a JSON form
	return text
}

func (t *ToolInvoked) effects(of *tool.Catalogue) []any {
	if !t.Success() {
		return nil
	}
	var all []any
	if of.FilesOf(t.Name) == tool.WritesFile && t.Path != "" {
		for _, path := range append([]string{t.Path}, t.MorePaths...) {
			all = append(all, FileModified{Path: path, Tool: t.Name})
		}
	}
	if native, ok := of.Native(t.Name); ok && native.Effect != nil {
		if effect := native.Effect(t.Params, t.Value); effect != nil {
			all = append(all, effect)
		}
	}
	return all
}

func (s *Session) isRecordedLocked(call event.CallID) (bool, error) {
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
	_, known := all.(*items[ToolInvoked]).index(callIDOf).positions.Get(call)
	return known, nil
}

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
	entry.Cause = cmp.Or(string(t.CallID), entry.Cause)
	return s.appendLocked(entry)
}
