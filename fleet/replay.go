// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// callAsked records that the gate was asked about a call, before the decision. Key is the tool and its input. Past is the
// call of an earlier attempt that answers it.
type callAsked struct {
	ID   event.CallID `json:"toolUseId"`
	Key  string       `json:"key"`
	Past event.CallID `json:"past,omitzero"`
}

// EventKind implements [event.Payload].
func (callAsked) EventKind() event.Kind { return "fleet:call_asked" }

// keyOf is the same for the same call of another attempt, whose working directory may have another name.
func keyOf(c *gate.Call, f *gate.Facts) string {
	input := string(c.Input)
	for _, dir := range []string{f.Workspace, f.Dir} {
		if len(dir) > 1 {
			input = strings.ReplaceAll(input, dir, "<dir>")
		}
	}
	return c.Name + " " + plainjson.Digest(json.RawMessage(input))
}

// A pastCall is one that an earlier attempt began.
type pastCall struct {
	id      event.CallID
	key     string
	allowed bool
	denied  string               // why; empty if it was not
	invoked *session.ToolInvoked // nil if its outcome is unknown
}

// callsByID are the calls of the log of one run.
type callsByID map[event.CallID]*pastCall

// A replay answers calls that earlier attempts have made, each once, in their order. It is a policy of the gate.
type replay struct {
	s *session.Session
	// answerTool is how the agent gives its answer. That is no effect: it may answer again.
	answerTool string

	mu   sync.Mutex
	past map[string][]*pastCall // those to be answered, by key
	last callsByID              // those of earlier attempts, the last of each id, and what answered them
	seen callsByID              // what a call of this attempt was answered with; nil if it is new
}

func newReplay(ctx context.Context, s *session.Session, of *tool.Catalogue) (*replay, error) {
	r := &replay{s: s, past: map[string][]*pastCall{}, last: callsByID{}, seen: callsByID{}}
	if of != nil {
		r.answerTool = of.AnswerTool
	}
	last := s.Last()
	if last == 0 {
		return r, nil
	}
	open := callsByID{}
	for entry, err := range s.After(ctx, 0) {
		if err != nil {
			return nil, err
		}
		r.note(open, entry.Event.Payload)
		if entry.Pos >= last {
			break
		}
	}
	for key, calls := range r.past {
		r.past[key] = slices.DeleteFunc(calls, func(c *pastCall) bool { return !c.allowed })
	}
	return r, ctx.Err()
}

func (r *replay) note(open callsByID, payload event.Payload) {
	switch p := payload.(type) {
	case callAsked:
		if p.Past != "" {
			r.last[p.ID] = r.last[p.Past]
			return
		}
		c := &pastCall{id: p.ID, key: p.Key}
		r.past[p.Key], open[p.ID], r.last[p.ID] = append(r.past[p.Key], c), c, c
	case event.Extension: // the session does not know the type yet
		if p.Kind == (callAsked{}).EventKind() {
			var asked callAsked
			if json.Unmarshal(p.Data, &asked) == nil {
				r.note(open, asked)
			}
		}
	case event.Decision:
		if c := open[p.CallID]; c != nil && p.Verdict == event.Allow {
			c.allowed = true
		} else if c != nil && p.Verdict == event.Deny {
			c.denied = p.Reason
		}
	case session.ToolInvoked:
		if p.Status == event.ToolSuccess || p.Status == event.ToolError { // a cancelled call may have had an effect
			if c := r.openCall(open, p); c != nil {
				c.invoked = &p
				delete(open, c.id)
			}
		}
	}
}

// openCall finds the call of a report. The session gives a call a new id if its own was used before.
func (r *replay) openCall(open callsByID, p session.ToolInvoked) *pastCall {
	if c := open[p.CallID]; c != nil {
		return c
	}
	for _, c := range open {
		if c.allowed && strings.HasSuffix(c.key, p.Name+" "+plainjson.Digest(p.Params)) {
			return c
		}
	}
	return nil
}

// result is what became of a call that the agent has no result of.
func (r *replay) result(id event.CallID) event.ToolResult {
	c := r.last[id]
	failed := func(message string) event.ToolResult {
		return event.ToolResult{ID: id, Status: event.ToolError, Failure: &event.ToolFailure{Message: message}}
	}
	switch {
	case c == nil || !c.allowed && c.denied == "":
		return failed(notBegun)
	case !c.allowed:
		return failed(c.denied)
	case c.invoked == nil:
		return failed(outcomeUnknown)
	case !c.invoked.Success():
		return failed(cmp.Or(c.invoked.Error, c.invoked.Output))
	}
	return event.ToolResult{ID: id, Status: event.ToolSuccess, Output: resultOf(c.invoked)}
}

// resultOf is what the model reads of a result: its text, if all of it is there.
func resultOf(t *session.ToolInvoked) json.RawMessage {
	if t.Source == session.NativeTool && t.Value != nil { // the text of such a call may be cut
		return t.Value
	}
	text, _ := plainjson.Marshal(cmp.Or(t.Output, string(t.Value))) // a text has a JSON form
	return text
}

// settle leaves out calls whose results the agent knows.
func (r *replay) settle(ids []event.CallID) {
	for _, id := range ids {
		if c := r.last[id]; c != nil {
			r.past[c.key] = slices.DeleteFunc(r.past[c.key], func(other *pastCall) bool { return other == c })
		}
	}
}

func (r *replay) policy() gate.Policy {
	return gate.Custom("fleet", func(c *gate.Call, f *gate.Facts) (event.Decision, bool) {
		if r.answerTool != "" && c.Name == r.answerTool {
			return event.Decision{}, false
		}
		past, fresh, err := r.take(c.ID, keyOf(c, f))
		switch {
		case err != nil:
			return event.Decision{Verdict: event.Deny, Policy: "fleet", Reason: "The call could not be recorded: " + err.Error()}, true
		case fresh:
			return event.Decision{}, false
		case past.invoked == nil:
			return event.Decision{Verdict: event.Deny, Policy: "fleet", Reason: outcomeUnknown}, true
		case !past.invoked.Success():
			return event.Decision{Verdict: event.Deny, Policy: "fleet", Reason: alreadyFailed(cmp.Or(past.invoked.Error, past.invoked.Output))}, true
		}
		return event.Decision{Verdict: event.Deny, Policy: "fleet", Reason: alreadyDone(cmp.Or(string(past.invoked.Value), past.invoked.Output))}, true
	})
}

// take finds the past call that answers a call, or records that it is a new one. A call gets one answer, however often the gate asks.
func (r *replay) take(id event.CallID, key string) (past *pastCall, fresh bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if past, known := r.seen[id]; known && (past == nil || past.key == key) {
		return past, past == nil, nil
	}
	if waiting := r.past[key]; len(waiting) > 0 {
		past = waiting[0]
	}
	asked := callAsked{ID: id, Key: key}
	if past != nil {
		asked.Past = past.id
	}
	if _, err := r.s.Dispatch(context.Background(), asked); err != nil {
		return nil, false, err
	}
	if past != nil {
		r.past[key] = r.past[key][1:]
	}
	r.seen[id] = past
	return past, past == nil, nil
}
