// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// A host answers what the agent asks during an evaluation: the gate, the hooks, the tools of the prompt.
// Its methods are called by several goroutines, some of them between the turns. What they need of the
// evaluation and may change is kept here too; what they change is the host's own, and becomes the evaluation's
// when the turn is over.
type host struct {
	*evaluation
	place    *place
	tracker  *guard.Tracker
	deadline guard.Deadline
	registry *tool.Registry
	engine   *gate.Engine
	feedback *guard.Feedbacker
	// probe is counted by whoever counts for the tracker. If nobody does, the host does.
	probe  *guard.Tracker
	before guard.Usage // what the probe had when the turn began
	calls  *agent.Ledger

	lock   sync.Mutex
	named  guard.RunContext        // the run of the last turn
	tell   func(event.Event)       // into the stream of the turn under way
	halt   context.CancelCauseFunc // ends it
	expand context.CancelCauseFunc // ends the attempt; the next one has more sections
	lost   error                   // why something could not be recorded
	stats  Stats
	models map[int]bool // the model calls of the turn, by number
	check  checkState
}

func (e *evaluation) newHost() (h *host, err error) {
	h = &host{evaluation: e, place: e.place, tracker: e.tracker, deadline: e.deadline, named: e.run, probe: new(guard.Tracker), calls: agent.NewLedger(nil)}
	h.registry, err = tool.NewRegistry(&tool.Options{
		Around: h.around(), Before: e.opts.Before, After: e.opts.After, Context: h.handlerContext,
		Timeout: e.opts.ToolTimeout, Emit: h.toolEvent, Logger: e.opts.Logger,
	})
	return h, err
}

// around is what each call of our tools runs in: a transaction of session and files together, which
// leaves one record.
func (h *host) around() tool.Around {
	inner := session.ToolTx(h.opts.Session, &session.ToolTxOptions{Adapter: h.adapter.Agent(), Prompt: h.prompt.Name(), Catalogue: h.adapter.Catalogue(), DispatchValues: true})
	return func(ctx context.Context, call *tool.Call, next func(context.Context) tool.Result) tool.Result {
		defer h.calls.Runs(call)()
		h.beat()
		if call.AgentID == "" { // which only the agent's hook is told
			call.AgentID = h.calls.State(call.ID).AgentID
		}
		begun := false
		run := func(ctx context.Context, call *tool.Call, next func(context.Context) tool.Result) tool.Result {
			begun = true
			h.count(Stats{ToolCalls: 1})
			return inner(ctx, call, next)
		}
		place := h.place.workspace()
		if place == nil {
			return run(ctx, call, next)
		}
		result := workspace.ToolTx(place, run)(ctx, call, next)
		if !begun && !call.DryRun { // the files could not be kept, so that nothing was begun
			h.recordUnbegun(ctx, call, result)
		}
		return result
	}
}

// handlerContext has what handlers ask for: the prompt, the adapter, the limits and the name of the run. Session
// and workspace are put there by their transactions.
func (h *host) handlerContext(ctx context.Context, _ tool.Call) context.Context {
	ctx = agent.WithAdapter(prompt.With(ctx, h.prompt, h.live.Rendered()), h.adapter)
	ctx = guard.WithTracker(guard.WithDeadline(ctx, h.deadline), h.tracker)
	return guard.WithRunContext(guard.WithHeartbeat(ctx, h.opts.Heartbeat), h.runContext())
}

// runContext names the run that is under way, or was last.
func (h *host) runContext() guard.RunContext {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.named
}

// toolEvent passes on what handlers tell. Of the calls themselves the agent tells.
func (h *host) toolEvent(e event.Event) {
	switch e.Payload.(type) {
	case event.ToolLog, event.ToolProgress, event.ToolStep:
		h.say(e)
	}
}

// opened makes the skills of opened sections available.
func (h *host) opened(ctx context.Context, o prompt.Opened) error {
	if len(o.Skills) == 0 {
		return nil
	}
	h.mu.Lock()
	talk, ok := h.talk.(agent.Learner)
	h.mu.Unlock()
	if !ok {
		return fmt.Errorf("%s takes no skills while it works\n  next: set RestartToOpen", h.adapter.Agent())
	}
	skills := make([]agent.Skill, 0, len(o.Skills))
	for _, s := range o.Skills {
		skills = append(skills, s)
	}
	return talk.AddSkills(ctx, skills)
}

// bind puts the host into the request.
func (h *host) bind(r *agent.Request) (err error) {
	if h.engine, err = h.newEngine(); err != nil {
		return err
	}
	h.registry.DecideBy(h.engine)
	h.feedback, err = guard.NewFeedback(h.opts.Session, &guard.FeedbackOptions{Files: h.files()}, h.opts.Feedback...)
	if err != nil {
		return err
	}
	r.Host = &gatekeeper{h.engine, h}
	r.Hooks, r.Ledger = h.hooks(), h.calls
	r.Tools = h.listedTools()
	if r.Trackers != nil {
		r.Trackers = append(r.Trackers, h.probe)
	}
	return nil
}

// begin begins a turn. Its context ends when something cannot be recorded: an agent whose work nobody
// can account for does not go on.
func (h *host) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, halt := context.WithCancelCause(ctx)
	h.lock.Lock()
	defer h.lock.Unlock()
	h.named, h.halt, h.models, h.before = h.run, halt, map[int]bool{}, h.probe.Consumed()
	h.check = checkState{rounds: h.summary.Rounds, last: h.summary.Completion}
	return ctx, func() { halt(nil) }
}

// settle ends a turn: every call of it has a record, and the summary has what was counted. The error
// says what could not be recorded.
func (h *host) settle(ctx context.Context, t *turn) error {
	ctx = context.WithoutCancel(ctx)
	h.calls.AwaitOwn(settleTimeout)
	// A subagent may go on in the background as long as its agent lives.
	h.recordOpen(ctx, h.talk == nil || t == nil || t.Status != event.DoneSuccess)
	h.lock.Lock()
	defer h.lock.Unlock()
	if t != nil && h.probe.Consumed() == h.before {
		h.tracker.Record(guard.UsageOf(t.Usage))
	}
	h.summary.Turns += len(h.models)
	h.models, h.tell, h.halt = nil, nil, nil
	h.reportLocked()
	lost := h.lost
	h.lost = nil // the next turn may find room again
	return lost
}

// reportLocked makes what was counted the evaluation's.
func (h *host) reportLocked() {
	h.summary.Stats.add(h.stats)
	h.summary.Rounds, h.summary.Completion = h.check.rounds, h.check.last
	h.stats = Stats{}
}

// settleTimeout is how long the end of a turn waits for calls of our own tools, which were told to end.
const settleTimeout = 5 * time.Second

// lose notes that something could not be recorded, and ends the turn.
func (h *host) lose(err error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.lost == nil {
		h.lost = fmt.Errorf("what happens can no longer be recorded: %w\n  next: make room for the session's store, or give it another one", err)
	}
	if h.halt != nil {
		h.halt(h.lost)
	}
}

// count adds to what is counted.
func (h *host) count(more Stats) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.stats.add(more)
}

// say puts an event of our own into the stream of the turn.
func (h *host) say(e event.Event) {
	h.lock.Lock()
	tell := h.tell
	h.lock.Unlock()
	if tell != nil {
		tell(e)
	}
}

// beat is a sign of life.
func (h *host) beat() {
	if h.opts.Heartbeat != nil {
		h.opts.Heartbeat.Beat()
	}
}
