// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
)

// codeBreach is the error of a run that went beyond the limits of its cell.
const codeBreach = "CELL_LIMIT"

// In is the adapter with another isolation. Nil means the default one: a cell without network for
// tools, with the credentials of the host's environment.
//
// Where base has a Spawner and there is no isolation, the Spawner is the caller's own way to isolate the CLI.
// The adapter then adds no isolation, home or gateway, and an event reports that.
func (a *Adapter) In(i *isolation.Isolation) *Adapter {
	return &Adapter{base: a.base, isolation: i, kept: a.kept, noTranscript: a.noTranscript, highEffort: a.highEffort}
}

// Scripted returns the adapter with a scripted model on this machine, by the URL of its script.Server. The isolation stays.
// No key is needed: requests have a made-up one, and no credential or endpoint of the environment is used.
func (a *Adapter) Scripted(url string) (*Adapter, error) {
	upstream, err := claudecell.Scripted(url)
	if err != nil {
		return nil, err
	}
	in := orZero(a.isolation)
	in.Upstream = upstream
	return a.In(&in), nil
}

// workspace is the folder in which the agent of a run in dir works, or "" if a Spawner isolates it.
func (a *Adapter) workspace(dir string) string {
	if a.isolation == nil && a.base.Spawner != nil {
		return ""
	}
	return cmp.Or(dir, a.base.Dir, ".")
}

// enter makes the cell of the run and puts it into the options.
func (r *run) enter(ctx context.Context, req agent.Request) error {
	if ctx.Err() != nil {
		return ctx.Err() // there is nothing to start
	}
	ours := r.adapter.isolation != nil || r.opts.Spawner == nil
	if ours {
		r.adapter.keep(&r.opts)
	}
	if r.session.entries > 0 && r.opts.Store != nil {
		r.opts.Store = snapshotStore{r.opts.Store, r.opts.Resume, r.session.entries}
	}
	if !ours {
		missing := []string{"a Spawner of the caller starts the CLI, and Drover does not isolate it"}
		if len(req.Limits()) > 0 {
			missing = append(missing, "no gateway enforces budgets: the CLI itself keeps a limit in dollars, and an evaluation checks the others after each turn")
		}
		r.cellEvents.add(isolation.Protection{Level: isolation.LevelHost, Enforced: []string{}, Missing: missing})
		return nil
	}
	if r.opts.Model != "" {
		r.opts.Model = r.adapter.modelName(r.opts.Model)
	}
	o := isolation.OpenOptions{RunID: req.RunID, Trackers: req.Limits(), Judged: req.Host != nil, Emit: r.cellEvents.add, Inspect: r.adapter.requiredAsk(r.opts).inspect, MaxTurns: r.opts.MaxTurns, SideCallsPerTurn: req.SideCallsPerTurn}
	cell, err := claudecell.Open(ctx, withSkills(r.adapter.isolation, req.Skills), &r.opts, o)
	if err != nil {
		return err
	}
	r.cell = cell
	if req.Host != nil && cell.Level() != isolation.LevelCell {
		avoidRootBypass(&r.opts) // in a cell the CLI is not root
	}
	return nil
}

// home is the home of the cell, or "" without one.
func (r *run) home() string {
	if r.cell == nil {
		return ""
	}
	return r.cell.Home().Path()
}

// limited is a context that ends with the first deadline of the cell's budgets, each by its own clock. Their other
// limits are kept by the gateway.
func (r *run) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.cell == nil {
		return ctx, func() {}
	}
	cancels := []context.CancelFunc{}
	for _, tracker := range r.cell.Trackers() {
		var cancel context.CancelFunc
		ctx, cancel = tracker.Budget().Deadline.Context(ctx)
		cancels = append(cancels, cancel)
	}
	return ctx, func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// yieldCellEvents yields the events of the cell. They come after the init, which is first.
func (r *run) yieldCellEvents(yield yieldFunc) (goOn bool) {
	for _, a := range r.cellEvents.take() {
		e := event.Event{
			Kind: a.EventKind(), Agent: Agent, Time: a.at,
			SessionID: r.normal.session, Turn: r.normal.turn, Payload: a.Payload,
		}
		if !yield(e, nil) {
			return false
		}
	}
	return true
}

// stoppedBy is the limit that ended the run, or nil.
func (r *run) stoppedBy(ctx context.Context) error {
	if r.cell == nil {
		return nil
	}
	if err := r.cell.Stopped(); err != nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, guard.ErrDeadlineExceeded) || errors.Is(cause, guard.ErrBudgetExhausted) {
		return cause
	}
	return nil
}

// limit makes it the ending of a run that a limit has stopped.
func (e *ending) limit(err error) {
	switch {
	case errors.Is(err, guard.ErrBudgetExhausted):
		e.dropError()
		e.done.Status, e.done.Result, e.done.Reason, e.done.Cause = event.DoneMaxBudget, advice.Text(err), "", err
	case errors.Is(err, gateway.ErrMaxTurns):
		e.dropError()
		e.done.Status, e.done.Result, e.done.Reason, e.done.Cause = event.DoneMaxTurns, advice.Text(err), "", err
	case errors.Is(err, guard.ErrDeadlineExceeded):
		e.dropError()
		e.done.Status, e.done.Result, e.done.Reason, e.done.Cause = event.DoneInterrupted, "", advice.Text(err), err
	case has[*unheededError](err):
		e.fail(codeUnheeded, err)
	default:
		e.fail(codeBreach, err)
	}
	e.partial()
}

// GatewayUsage is the key in the metadata of the done event that has the gateway's own count of the
// run, as a gateway.Usage. The event's usage has the same tokens and cost.
const GatewayUsage = "gatewayUsage"

func (e *ending) describe(key string, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		return
	}
	if e.last.Metadata == nil {
		e.last.Metadata = map[string]json.RawMessage{}
	}
	e.last.Metadata[key] = raw
}
