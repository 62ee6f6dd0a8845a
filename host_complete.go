// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/guard"
)

// A checkState is what is known about whether the task is done.
type checkState struct {
	rounds int              // how often the agent was sent back
	last   guard.Completion // what was found last
	fresh  bool             // it was found about what the agent wants to stop with
}

// Why an agent wants to stop.
const (
	stopAnswer = "structured_output"
	stopEnd    = "end_turn"
)

// answering sends the agent back that wants to answer and is not done.
func (h *host) answering(ctx context.Context, a agent.Answer) (string, error) {
	return h.unfinished(ctx, a.Output, stopAnswer)
}

// stopping does the same where it wants to stop without an answer. Once an answer was accepted that has
// been asked.
func (h *host) stopping(ctx context.Context, s agent.Stop) (string, error) {
	if s.Answered {
		return "", nil
	}
	return h.unfinished(ctx, nil, stopEnd)
}

// unfinished is what the agent is told if the task is not done and it may still be sent back, or nothing.
// A checker that fails has found nothing done.
func (h *host) unfinished(ctx context.Context, output json.RawMessage, reason string) (string, error) {
	found, err := guard.CheckCompletion(ctx, h.opts.Completion, guard.Attempt{
		Session: h.opts.Session, Output: h.unwrapped(output), StopReason: reason, Files: h.files(), Exec: h.exec(),
	}, h.deadline, h.tracker)
	if err != nil {
		found = guard.Incomplete(cmp.Or(found.Feedback, "The completion check failed to run. Keep working until you are sure that the task is complete."))
		h.count(Stats{HookErrors: 1})
		h.opts.Logger.WarnContext(ctx, "the completion check failed; the task counts as not done", "error", err)
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	h.check.last, h.check.fresh = found, true
	if found.Done || h.check.rounds >= h.opts.MaxRounds {
		return "", nil
	}
	h.check.rounds++
	h.check.fresh = false // what it does next is not known yet
	return found.Feedback, nil
}

// verify asks about an agent that has stopped without being asked, or although it was sent back: agents
// bound how often they can be. What it returns is the next that it is told.
func (h *host) verify(ctx context.Context, t *turn) string {
	h.lock.Lock()
	known := h.check.fresh
	h.lock.Unlock()
	if h.opts.Completion == nil || known {
		return ""
	}
	reason := stopEnd
	if t.Output != nil {
		reason = stopAnswer
	}
	next, _ := h.unfinished(ctx, t.Output, reason) // which never fails
	h.lock.Lock()
	defer h.lock.Unlock()
	h.reportLocked()
	return next
}

// files is where the agent works.
func (h *host) files() guard.Files {
	if w := h.place.workspace(); w != nil {
		return guard.Dir(w.Root())
	}
	if h.opts.Dir != "" {
		return guard.Dir(h.opts.Dir)
	}
	if a, ok := h.adapter.(placed); ok && a.Dir() != "" {
		return guard.Dir(a.Dir())
	}
	return nil
}
