// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

// hooks are what the agent asks and tells beside the decisions about its calls.
func (h *host) hooks() *agent.Hooks {
	hooks := &agent.Hooks{
		Rewrite:   safely(h, "Rewrite", h.rewrite),
		Submitted: safely(h, "Submitted", h.submitted),
		CallEnded: safely(h, "CallEnded", h.callEnded),
		SubagentStarted: func(ctx context.Context, a agent.Subagent) {
			h.count(Stats{Subagents: 1})
			h.happened(ctx, a.ID, SubagentStarted{ID: a.ID, Type: a.Type})
		},
		SubagentStopped: func(ctx context.Context, a agent.Subagent) {
			h.happened(ctx, a.ID, SubagentStopped{ID: a.ID, Type: a.Type, Text: a.Text})
		},
		Compacting: func(ctx context.Context, c agent.Compaction) {
			h.count(Stats{Compactions: 1})
			h.happened(ctx, "", Compacting{Trigger: c.Trigger, Instructions: c.Instructions})
		},
	}
	if h.opts.RestartToOpen {
		hooks.BatchEnded = h.restart
	}
	if h.opts.Completion != nil {
		hooks.Answering = safely(h, "Answering", h.answering)
		hooks.Stopping = safely(h, "Stopping", h.stopping)
	}
	return hooks
}

// safely is a hook that neither panics nor fails unnoticed. None of them ends the run.
func safely[In, Out any](h *host, name string, hook func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		h.beat()
		log := h.opts.Logger
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("drover: the hook %s panicked: %v", name, p)
				log = log.With("stack", string(debug.Stack()))
			}
			if err != nil {
				h.count(Stats{HookErrors: 1})
				log.ErrorContext(ctx, "Hook error", "hook", name, "error", err)
			}
		}()
		return hook(ctx, in)
	}
}

// happened records something that only a hook tells, and tells of it in the stream.
func (h *host) happened(ctx context.Context, agentID string, what event.Payload) {
	h.beat()
	e := event.New(what)
	e.Agent, e.RunID, e.AgentID = h.adapter.Agent(), h.runContext().RunID, agentID
	e.Position = h.dispatch(ctx, e)
	h.say(e)
}

// opening is the first message of the user: what the session knows of the task, and then the prompt.
func (h *host) opening(text string) string {
	lines := session.ContextLines(h.opts.Session)
	if len(lines) == 0 {
		return text
	}
	return strings.Join(lines, "\n") + "\n\n" + text
}

// submitted gives the agent what the session knows of the task, unless the message says it itself.
func (h *host) submitted(_ context.Context, s agent.Submission) (string, error) {
	h.count(Stats{Prompts: 1})
	known := strings.Join(session.ContextLines(h.opts.Session), "\n")
	if strings.HasPrefix(s.Prompt, known) {
		return "", nil
	}
	return known, nil
}

// callEnded records a call of the agent's own tools at once, and answers with feedback.
func (h *host) callEnded(ctx context.Context, end agent.CallEnd) (string, error) {
	if c, record := h.calls.TakeEnd(end.ToolCall); record {
		invoked := h.invoked(c)
		invoked.Status, invoked.Value, invoked.Error = end.Status, end.Output, end.Error
		invoked.Duration = cmp.Or(end.Duration, invoked.Duration)
		invoked.Output = shown(end.Output)
		if len(end.Output) == 0 {
			invoked.Output = shown(asText(end.Error))
		}
		h.recordCall(context.WithoutCancel(ctx), invoked, true)
	}
	return h.feedback.AfterCall(ctx, end.ID)
}

// expandable is the context of a run that ends when the model asks for hidden sections.
func (h *host) expandable(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := h.adapter.(agent.Batcher); !ok || !h.opts.RestartToOpen {
		return h.live.Context(ctx)
	}
	ctx, end := context.WithCancelCause(ctx)
	h.lock.Lock()
	defer h.lock.Unlock()
	h.expand = end
	return ctx, func() { end(nil) }
}

// restart ends the run of a model that has asked for hidden sections, when its whole message was carried out: it
// may ask several times in one. The hook waits for the end, so that the model is not asked again.
func (h *host) restart(ctx context.Context) {
	wanted := h.live.Expansion()
	h.lock.Lock()
	end := h.expand
	h.lock.Unlock()
	if wanted == nil || end == nil {
		return
	}
	end(wanted)
	pause(ctx, settleTimeout)
}

func asText(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a string
	return raw
}
