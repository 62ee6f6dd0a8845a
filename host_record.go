// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// saw takes note of an event of the agent, before it is recorded.
func (h *host) saw(ctx context.Context, ev event.Event) {
	h.beat()
	h.countTurn(ev)
	switch what := ev.Payload.(type) {
	case event.ToolCall:
		what.AgentID = cmp.Or(what.AgentID, ev.AgentID)
		h.calls.Told(what)
		h.past.open = append(h.past.open, openCall{what.ID, h.readOnly(what)})
	case event.ToolResult:
		h.past.ended(what)
		h.recordResult(context.WithoutCancel(ctx), ev.AgentID, what)
	case gateway.ModelCall:
		h.past.retryAfter = time.Duration(what.RetryAfterMS * float64(time.Millisecond))
	}
}

// kindTurnEnd is the kind of the log's entry for the done of a turn. A run may have several turns; it has one done.
const kindTurnEnd event.Kind = "turn:done"

// recordTurn records how a turn ended.
func (h *host) recordTurn(ctx context.Context, ev event.Event) {
	var done struct{ Payload json.RawMessage }
	line, err := ev.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(line, &done)
	}
	if err != nil {
		h.lose(err)
		return
	}
	ev.Seq, ev.Payload = 0, event.Extension{Kind: kindTurnEnd, Data: done.Payload}
	h.dispatch(ctx, ev)
}

// dispatch puts something into the session's log and returns its position. A log that takes nothing more ends the turn.
func (h *host) dispatch(ctx context.Context, what any) event.Position {
	entry, err := h.opts.Session.Dispatch(context.WithoutCancel(ctx), what)
	if err != nil {
		h.lose(err)
	}
	return event.Position{Entry: entry}
}

// countTurn counts the model calls of the main agent.
func (h *host) countTurn(ev event.Event) {
	if ev.Turn == 0 || ev.AgentID != "" || ev.ParentToolUseID != "" {
		return
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.models != nil {
		h.models[ev.Turn] = true
	}
}

// recordResult records a call of which nobody else tells: it was denied, or the agent itself refused it,
// or could not make it. What our registry has begun, it records.
func (h *host) recordResult(ctx context.Context, agentID string, r event.ToolResult) {
	c, record, known := h.calls.TakeResult(r.ID)
	if !record {
		return
	}
	c.Name = cmp.Or(c.Name, r.Name)
	c.AgentID = cmp.Or(c.AgentID, agentID)
	invoked := h.invoked(c)
	invoked.Status, invoked.Value = r.Status, r.Output
	if c.Began.IsZero() {
		invoked.Duration = r.Duration
	}
	invoked.Output = shown(r.Output)
	if r.Failure != nil {
		invoked.Error = r.Failure.Message
	}
	h.recordCall(ctx, invoked, known)
}

// recordUnbegun records a call of ours that could not be made.
func (h *host) recordUnbegun(ctx context.Context, call *tool.Call, result tool.Result) {
	t := h.invoked(agent.CallState{ToolCall: call.Event()})
	t.Source, t.Status, t.Error, t.Output = session.BridgedTool, tool.Failed, result.Render(), result.Render()
	h.recordCall(ctx, t, true)
}

// recordOpen records the calls that never came to an end. Those of subagents only if all is over.
func (h *host) recordOpen(ctx context.Context, all bool) {
	for _, c := range h.calls.TakeOpen(all) {
		invoked := h.invoked(c)
		invoked.Status, invoked.Error = event.ToolCancelled, "The turn ended before the call did."
		if d := c.Decision; d != nil && d.Verdict != event.Allow {
			invoked.Status, invoked.Error = event.ToolDenied, d.Reason
		}
		h.recordCall(ctx, invoked, true)
	}
}

// invoked is the record of a call, but for its end.
func (h *host) invoked(c agent.CallState) session.ToolInvoked {
	name, source := h.toolOf(c.Name)
	t := session.ToolInvoked{
		CallID: c.ID, Name: name, Source: source, Adapter: h.adapter.Agent(), Prompt: h.prompt.Name(),
		AgentID: c.AgentID, Params: c.Input, Dir: c.Dir,
	}
	if !c.Began.IsZero() {
		t.Duration = time.Since(c.Began)
	}
	return t
}

// recordCall records a call, once. One of this run that has the id of another is recorded under an id of its own; one
// of an earlier run has its record.
func (h *host) recordCall(ctx context.Context, t session.ToolInvoked, ofThisRun bool) {
	recorded, err := h.opts.Session.RecordTool(ctx, t, h.adapter.Catalogue())
	if ofThisRun && !recorded && err == nil {
		t.CallID = event.CallID(h.opts.Session.NewID())
		recorded, err = h.opts.Session.RecordTool(ctx, t, h.adapter.Catalogue())
	}
	if err != nil {
		h.lose(err)
	}
	if recorded {
		h.count(Stats{ToolCalls: 1})
	}
}

// toolOf is the name of a tool without that of our server, and who runs it.
func (h *host) toolOf(name string) (string, session.ToolSource) {
	if bare, ours := h.opts.ownTool(name); ours {
		return bare, session.BridgedTool
	}
	if _, isMCP := tool.ParseMCPName(name); isMCP {
		return name, session.BridgedTool
	}
	return name, session.NativeTool
}

// ownTool is the name of a tool of the prompt, without that of the server, if a name is of one.
func (o *Options) ownTool(name string) (string, bool) {
	n, isMCP := tool.ParseMCPName(name, o.ToolServer)
	return n.Tool, isMCP && n.Server == tool.NewMCPName(o.ToolServer, "").Server
}

// maxShown is how much of a result is kept as text; the value has all of it.
const maxShown = 1000

// shown is what of a result is text, as far as that can be told.
func shown(output json.RawMessage) string {
	var text string
	var ran struct{ Stdout, Stderr string }
	switch {
	case json.Unmarshal(output, &text) == nil:
	case json.Unmarshal(output, &ran) == nil && ran.Stdout+ran.Stderr != "":
		text = strings.TrimSuffix(ran.Stdout+"\n"+ran.Stderr, "\n")
	default:
		text = string(output)
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "")
	}
	return text
}
