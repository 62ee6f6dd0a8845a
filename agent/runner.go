// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/tool"
)

// RunnerOptions configures a [Runner]. Nil and the zero value are ready to use.
type RunnerOptions struct {
	// Role is the part that the agent plays among several. Its events carry it.
	Role string
	// Defaults fill the fields that a request leaves empty. They have no Resume, Fork, Fresh, Host, Ledger or LastSeq.
	Defaults Request

	// Policies judge the tool calls of every run, beside the permissions and lists of the request.
	Policies []gate.Policy
	// Approver is asked where the verdict of the permissions or policies is ask. Nil denies such calls. Where there are
	// neither, nothing asks, and it is left out.
	Approver gate.Approver
	// ApprovalTimeout is how long an answer may take; see [gate.EngineOptions].
	ApprovalTimeout time.Duration

	// DrainTimeout is how long an adapter may take to yield its done once the context has ended. Then the
	// Runner yields one. Zero means 500 milliseconds.
	DrainTimeout time.Duration
	// CloseTimeout is how long the end of the loop waits for an adapter to return. Zero means 20
	// seconds, a little more than Claude Code takes at worst.
	CloseTimeout time.Duration
	// Logger receives failures after the end of a run. Nil discards.
	Logger *slog.Logger

	// Now is the clock and NewRunID the source of ids, for streams that must not differ from run to
	// run. Nil means the real time and random UUIDs.
	Now      func() time.Time
	NewRunID func() string
}

const (
	defaultDrainTimeout = 500 * time.Millisecond
	defaultCloseTimeout = 20 * time.Second
)

// ErrBusy is the error of a run that is begun while another one of the same Runner goes on.
var ErrBusy = advice.Wrap(errors.New("agent: the runner is running already"), "wait until that run is over, or make another runner")

// A Runner runs one agent, one prompt at a time, and remembers the conversation: each run continues the last one unless the
// request sets another. It may be used by several goroutines, but only one run can be under way.
type Runner struct {
	adapter Adapter
	agent   string
	opts    RunnerOptions

	mu      sync.Mutex
	running bool
	token   string
}

// NewRunner makes a runner of an adapter.
func NewRunner(a Adapter, opts *RunnerOptions) (*Runner, error) {
	if a == nil {
		return nil, errors.New("agent: a runner needs an adapter, such as claudecode.New(nil)")
	}
	r := &Runner{adapter: a, agent: a.Agent()}
	if r.agent == "" {
		return nil, errNoName
	}
	if opts != nil {
		r.opts = *opts
	}
	if d := r.opts.Defaults; d.Resume != "" || d.Fork || d.Fresh || d.Host != nil || d.Ledger != nil || d.LastSeq != 0 {
		return nil, errors.New("agent: Defaults cannot have Resume, Fork, Fresh, Host, Ledger or LastSeq; give them to the run that they are for")
	}
	r.opts.fill()
	return r, nil
}

// fill makes the options complete and the runner's own.
func (o *RunnerOptions) fill() {
	o.Defaults = o.Defaults.clone()
	o.Policies = slices.Clone(o.Policies)
	if o.DrainTimeout == 0 {
		o.DrainTimeout = defaultDrainTimeout
	}
	if o.CloseTimeout == 0 {
		o.CloseTimeout = defaultCloseTimeout
	}
	o.Logger = safelog.Logger(o.Logger)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewRunID == nil {
		o.NewRunID = ident.NewUUID
	}
}

// Agent is the name of the agent.
func (r *Runner) Agent() string { return r.agent }

// ResumeToken is what the next run continues; empty if it begins a new conversation.
func (r *Runner) ResumeToken() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.token
}

func (r *Runner) remember(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token = token
}

// begin reserves the runner for one run.
func (r *Runner) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		return false
	}
	r.running = true
	return true
}

func (r *Runner) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = false
}

// Run runs the agent and yields what happens; the package comment has its promises. The run begins with the loop. An error
// comes alone, instead of events: the run was refused ([ErrBusy], a request that contradicts itself, a policy that cannot be
// made). Whatever goes wrong later, in the adapter too, is an [event.Error] before the [event.Done].
//
// When ctx ends the agent is stopped, and only the done event still comes. Breaking out of the loop stops the agent too.
func (r *Runner) Run(ctx context.Context, req Request) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if !r.begin() {
			yield(event.Event{}, ErrBusy)
			return
		}
		defer r.finish()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		x, err := r.prepare(ctx, req)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		x.stream(cancel, yield)
	}
}

// prepare lays the request over the defaults and makes the host.
func (r *Runner) prepare(ctx context.Context, req Request) (*run, error) {
	if req.Fresh && req.Resume != "" {
		return nil, advice.Wrap(errors.New("agent: a request cannot have both Resume and Fresh"), "leave one of them out")
	}
	req = merge(r.opts.Defaults, req).clone()
	if req.Resume == "" && !req.Fresh {
		req.Resume = r.ResumeToken()
	}
	known := req.KnownNames(r.adapter.Catalogue(), req.Registry)
	if err := req.CheckNames(known); err != nil {
		return nil, err
	}
	x := newRun(ctx, r)
	host, err := r.host(req, known, x.merged.emit)
	if err != nil {
		return nil, err
	}
	if emitter, ok := host.(Emitter); ok {
		emitter.EmitTo(x.merged.emit)
	}
	req.Host = host
	x.id, x.seq = cmp.Or(req.RunID, x.id), req.LastSeq
	req.RunID = x.id
	x.req = req
	return x, nil
}

// host makes the engine that decides about the tool calls of a run, or returns nil if the agent alone decides.
func (r *Runner) host(req Request, known tool.KnownNames, emit func(event.Event)) (Host, error) {
	switch {
	case req.Host != nil && (req.Permissions != nil || len(r.opts.Policies) > 0):
		return nil, advice.Wrap(errors.New("agent: a request with a Host cannot have Permissions or Policies too"), "put them into the gate of the host")
	case req.Host != nil && hasArgument(req.Tools):
		return nil, advice.Wrap(errors.New("agent: a request with a Host cannot have Tools with arguments, which only a gate enforces"), "put gate.AllowTools into the gate of the host")
	case req.Host != nil || req.Permissions == nil && len(r.opts.Policies) == 0 && !hasArgument(req.Tools):
		return req.Host, nil
	}
	g, err := gate.New(r.policies(req)...)
	if err == nil {
		err = g.CheckNames(known)
	}
	if err != nil {
		return nil, fmt.Errorf("agent: permissions of the run: %w", err)
	}
	return gate.NewEngine(g, &gate.EngineOptions{
		Approver: r.opts.Approver, ApprovalTimeout: r.opts.ApprovalTimeout, Logger: r.opts.Logger,
		Emit: func(e event.Event) error { emit(e); return nil },
	}), nil
}

// hasArgument reports whether a list names a tool with an argument, as "Bash(git status)". No agent takes
// that for a boundary: to Claude Code it is a call that needs no question, beside others.
func hasArgument(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "(") })
}

func (r *Runner) policies(req Request) []gate.Policy {
	all := []gate.Policy{gate.KnowsAgent(r.adapter.Catalogue())}
	if req.Permissions != nil {
		all = append(all, gate.FromCapabilities(req.Permissions))
	}
	if req.Registry != nil {
		all = append(all, gate.Knows(cmp.Or(req.ToolServer, tool.DefaultServerName), req.Registry))
	}
	if req.Tools != nil {
		all = append(all, gate.AllowTools(ListedTools(req, r.adapter.Catalogue())...))
	}
	if len(req.DisallowedTools) > 0 {
		all = append(all, gate.DenyTools(req.DisallowedTools...))
	}
	return append(all, r.opts.Policies...)
}
