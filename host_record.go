// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// saw records an event of the agent. Its number in the session is that of the log.
func (h *host) saw(ctx context.Context, ev event.Event) {
	h.beat()
	ctx = context.WithoutCancel(ctx)
	h.countTurn(ev)
	switch what := ev.Payload.(type) {
	case event.TextDelta:
		return // the text comes once more, whole
	case event.Decision, event.PermissionRequest, SubagentStarted, SubagentStopped, Compacting:
		return // recorded when they were told
	case event.ToolCall:
		what.AgentID = cmp.Or(what.AgentID, ev.AgentID)
		h.calls.note(what)
	case event.ToolResult:
		h.recordResult(ctx, ev.AgentID, what)
	}
	ev.Seq = 0
	h.dispatch(ctx, ev)
}

// dispatch puts something into the session's log. One that takes nothing more ends the turn.
func (h *host) dispatch(ctx context.Context, what any) {
	if _, err := h.opts.Session.Dispatch(context.WithoutCancel(ctx), what); err != nil {
		h.lose(err)
	}
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
	if h.calls.isOwn(r.ID) {
		h.calls.forget(r.ID)
		return
	}
	c := h.calls.get(r.ID)
	c.Name = cmp.Or(c.Name, r.Name)
	c.AgentID = cmp.Or(c.AgentID, agentID)
	invoked := h.invoked(c)
	invoked.Status, invoked.Value = r.Status, r.Output
	if c.began.IsZero() {
		invoked.Duration = r.Duration
	}
	invoked.Output = shown(r.Output)
	if r.Failure != nil {
		invoked.Error = r.Failure.Message
	}
	h.recordCall(ctx, invoked)
}

// recordUnbegun records a call of ours that could not be made.
func (h *host) recordUnbegun(ctx context.Context, call *tool.Call, result tool.Result) {
	t := h.invoked(openCall{ToolCall: call.Event()})
	t.Source, t.Status, t.Error, t.Output = session.BridgedTool, tool.Failed, result.Render(), result.Render()
	h.recordCall(ctx, t)
}

// recordOpen records the calls that never came to an end. Those of subagents only if all is over.
func (h *host) recordOpen(ctx context.Context, all bool) {
	for _, c := range h.calls.open(all) {
		invoked := h.invoked(c)
		invoked.Status, invoked.Error = event.ToolCancelled, "The turn ended before the call did."
		if d := c.decision; d != nil && d.Verdict != event.Allow {
			invoked.Status, invoked.Error = event.ToolDenied, d.Reason
		}
		h.recordCall(ctx, invoked)
	}
}

// invoked is the record of a call, but for its end.
func (h *host) invoked(c openCall) session.ToolInvoked {
	name, source := h.toolOf(c.Name)
	t := session.ToolInvoked{
		CallID: c.ID, Name: name, Source: source, Adapter: h.adapter.Agent(), Prompt: h.prompt.Name(),
		AgentID: c.AgentID, Params: c.Input, Dir: c.Dir,
	}
	if !c.began.IsZero() {
		t.Duration = time.Since(c.began)
	}
	return t
}

// recordCall records a call, once: the session knows which it has.
func (h *host) recordCall(ctx context.Context, t session.ToolInvoked) {
	h.calls.forget(t.CallID)
	recorded, err := h.opts.Session.RecordTool(ctx, t, h.adapter.Catalogue())
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

// A callBook has the calls that have begun and not ended, as far as the agent lets us know.
type callBook struct {
	mu    sync.Mutex
	calls map[string]openCall
	own   map[string]bool // calls that our registry has begun: it records them

	running int           // of those, how many have not ended
	idle    chan struct{} // closed when none is left
}

type openCall struct {
	event.ToolCall
	decision *event.Decision
	began    time.Time // when it was allowed
	over     bool
}

// note takes in what is known of a call.
func (b *callBook) note(c event.ToolCall) {
	b.change(c.ID, func(known *openCall) {
		known.ID, known.Name = c.ID, cmp.Or(known.Name, c.Name)
		known.AgentID, known.Dir = cmp.Or(known.AgentID, c.AgentID), cmp.Or(known.Dir, c.Dir)
		if known.Input == nil || known.decision == nil {
			known.Input = c.Input
		}
	})
}

// decide takes in what was decided about a call. An input that the decision wrote is the one that counts.
func (b *callBook) decide(d event.Decision) {
	b.change(d.CallID, func(known *openCall) {
		if known.ID == "" {
			return // a call that the agent does not know of
		}
		known.decision, known.began = &d, time.Now()
		if d.Input != nil {
			known.Input = d.Input
		}
	})
}

func (b *callBook) change(id string, change func(*openCall)) {
	if id == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.calls[id]
	if c.over {
		return
	}
	if change(&c); c.ID == "" {
		return
	}
	if b.calls == nil {
		b.calls = map[string]openCall{}
	}
	b.calls[id] = c
}

func (b *callBook) get(id string) openCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.calls[id]
	c.ID = id
	return c
}

// forget closes a call. What is said of it later opens it no more.
func (b *callBook) forget(id string) {
	b.change(id, func(c *openCall) { *c = openCall{ToolCall: event.ToolCall{ID: id}, over: true} })
}

// open are the calls that have not ended, in the order of their ids.
func (b *callBook) open(all bool) []openCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	var open []openCall
	for _, id := range slices.Sorted(maps.Keys(b.calls)) {
		if c := b.calls[id]; !c.over && (all || c.AgentID == "") && !b.own[id] {
			open = append(open, c)
		}
	}
	return open
}

// runs notes that our registry has begun a call. What it returns notes the end.
func (b *callBook) runs(id string) (ended func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.own == nil {
		b.own = map[string]bool{}
	}
	b.own[id] = true
	if b.running++; b.running == 1 {
		b.idle = make(chan struct{})
	}
	return func() {
		b.forget(id)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.running--; b.running == 0 {
			close(b.idle)
		}
	}
}

func (b *callBook) isOwn(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.own[id]
}

// awaitOwn waits until the calls of our registry have ended, but not for ever.
func (b *callBook) awaitOwn(limit time.Duration) {
	b.mu.Lock()
	running, idle := b.running, b.idle
	b.mu.Unlock()
	if running == 0 {
		return
	}
	select {
	case <-idle:
	case <-time.After(limit):
	}
}
