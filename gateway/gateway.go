// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/safelog"
)

// Options configures a [Gateway]. Nil or the zero value is ready to use.
type Options struct {
	// Logger receives diagnostics, never a secret. Nil discards them.
	Logger *slog.Logger
	// MaxInFlight is how many calls to upstreams of one name run at once. Zero means 16.
	MaxInFlight int
	// MaxWait is how long a call may wait in all because the upstream is overloaded. Zero means 2 minutes.
	MaxWait time.Duration
	// Prices is what tokens cost, by canonical names of models. Nil means the [Wire.Prices] of each upstream.
	Prices *Prices
}

// A Gateway is what the runs of a program share: the queue for each upstream, what is known about
// overloaded upstreams, and the prices. It owns no goroutine and need not be closed.
type Gateway struct {
	logger      *slog.Logger
	maxInFlight int
	maxWait     time.Duration
	prices      *Prices

	mu    sync.Mutex
	lanes map[string]*lane
}

// New makes a gateway.
func New(o *Options) *Gateway {
	g := &Gateway{lanes: map[string]*lane{}}
	if o != nil {
		g.logger, g.maxInFlight, g.maxWait, g.prices = o.Logger, o.MaxInFlight, o.MaxWait, o.Prices
	}
	g.logger = safelog.Logger(g.logger)
	if g.maxInFlight <= 0 {
		g.maxInFlight = 16
	}
	if g.maxWait <= 0 {
		g.maxWait = 2 * time.Minute
	}
	return g
}

func (g *Gateway) pricesOf(w *Wire) *Prices {
	switch {
	case g.prices != nil:
		return g.prices
	case w.Prices != nil:
		return w.Prices()
	}
	return &Prices{}
}

var shared = sync.OnceValue(func() *Gateway { return New(nil) })

// Shared is the default gateway of all runs of a program: they back off together from an overloaded upstream.
func Shared() *Gateway { return shared() }

// RunOptions configures a [Run]. Only Upstream is required.
type RunOptions struct {
	// Upstream is where the calls go.
	Upstream Upstream
	// RunID names the run in logs.
	RunID string
	// Trackers are all recorded into; the first whose limit is reached ends the run. Runs may share a tracker.
	Trackers []*guard.Tracker
	// Models are the models that may be asked for, in any spelling that [Wire.CanonicalModel] knows. Nil means any.
	Models []string
	// Inspect sees each model call that would cost something before it goes out, from any goroutine. An
	// error ends the run as [Run.Stop] does, and the call does not go out. Nil lets all calls pass.
	Inspect func(Ask) error
	// Remote is what the API may reach for the agent. Nil means anything.
	Remote *Remote
	// MaxTurns is how many calls the main conversation may make for one prompt. Zero means no limit. See [Run.BeginPrompt].
	MaxTurns int
	// SideCallsPerTurn is how many calls there may be beside those, for each of MaxTurns: those of subagents, for
	// compactions, to try again, and all that commands in the cell make. Zero means ten.
	SideCallsPerTurn int
	// Emit receives the events, from any goroutine and never under a lock. It must not close the run,
	// which waits for it. Nil discards them.
	Emit func(event.Payload)
}

// Open begins a run. Close it.
func (g *Gateway) Open(o RunOptions) (*Run, error) {
	if o.Upstream == nil {
		return nil, advice.Wrap(errors.New("gateway: a run needs an upstream"), "set RunOptions.Upstream, for instance to Anthropic(APIKey(key))")
	}
	if err := o.Upstream.Wire().validate(); err != nil {
		return nil, advice.Wrap(fmt.Errorf("gateway: the wire of the upstream %s cannot be used: %w", o.Upstream.Name(), err),
			"use WireAnthropic, WireBedrock or a whole Wire")
	}
	for _, t := range o.Trackers {
		if err := t.Budget().Validate(); err != nil {
			return nil, fmt.Errorf("gateway: a budget of the run makes no sense: %w", err)
		}
	}
	if o.Emit == nil {
		o.Emit = func(event.Payload) {}
	}
	r := newRun(g, o, tokenPrefix+rand.Text())
	r.lane.enter(o.Upstream)
	r.watch()
	return r, nil
}

// tokenPrefix lets people recognise a token that they find.
const tokenPrefix = "drover-run-"

func (g *Gateway) laneOf(name string) *lane {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lanes[name] == nil {
		g.lanes[name] = newLane(g.maxInFlight)
	}
	return g.lanes[name]
}

// limits returns a context that ends when one of the trackers is spent.
func limits(ctx context.Context, trackers []*guard.Tracker) (context.Context, context.CancelFunc) {
	cancels := make([]context.CancelFunc, 0, len(trackers))
	for _, t := range trackers {
		var cancel context.CancelFunc
		ctx, cancel = t.Context(ctx)
		cancels = append(cancels, cancel)
	}
	return ctx, func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}
