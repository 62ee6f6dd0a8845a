// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// An Adapter is an [agent.Adapter] that follows a script. It is safe for concurrent use if its steps
// are; those of this package are.
type Adapter struct {
	// Name is the name of the agent. Empty means "scripted".
	Name string
	// Readiness is the result of Ready. The zero value means ready. An adapter that is not available
	// yields the error of it, and no event.
	Readiness agent.Readiness
	// Tools is the catalogue of the agent's own tools.
	Tools *tool.Catalogue
	// Steps are done in order by each run. A script that has no [Done] ends without one.
	Steps []Step

	mu       sync.Mutex
	requests []agent.Request
}

var _ agent.Adapter = (*Adapter)(nil)

// New makes an adapter of a script.
func New(steps ...Step) *Adapter { return &Adapter{Steps: steps} }

// Agent implements [agent.Adapter].
func (a *Adapter) Agent() string { return cmp.Or(a.Name, "scripted") }

// Catalogue implements [agent.Adapter].
func (a *Adapter) Catalogue() *tool.Catalogue { return a.Tools }

// Ready implements [agent.Adapter].
func (a *Adapter) Ready(context.Context) agent.Readiness {
	r := a.Readiness
	r.State = cmp.Or(r.State, agent.StateReady)
	return r
}

// Requests lists the requests of the runs so far, as they reached the adapter.
func (a *Adapter) Requests() []agent.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]agent.Request(nil), a.requests...)
}

var errNoHost = advice.Wrap(errors.New("agenttest: the request has Permissions and no Host, which would enforce them"), "run it by an agent.Runner, which makes the host, or give it a Host")

// Run implements [agent.Adapter]: it does the steps. After each of them it looks whether it is still
// wanted. When ctx has ended it yields an interrupted done; when the loop over its events has, it returns.
// See [Obstinate] for an adapter that does not care.
func (a *Adapter) Run(ctx context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		a.mu.Lock()
		a.requests = append(a.requests, req)
		a.mu.Unlock()
		r := &Run{Context: ctx, Request: req, yield: yield}
		if err := a.Readiness.Err(); err != nil {
			yield(event.Event{}, err)
			return
		}
		if req.Permissions != nil && req.Host == nil {
			yield(event.Event{}, errNoHost)
			return
		}
		for _, step := range a.Steps {
			if r.stopped() {
				return
			}
			step(r)
		}
		r.stopped()
	}
}

// A Run is a run that a script is in.
type Run struct {
	Context context.Context
	Request agent.Request

	yield     func(event.Event, error) bool
	unwanted  bool // yield has returned false
	obstinate bool
}

// Yield gives an event or an error to the reader of the run, if it still reads, and reports whether the reader
// wants more.
func (r *Run) Yield(e event.Event, err error) bool {
	if r.unwanted && !r.obstinate {
		return false
	}
	r.unwanted = !r.yield(e, err)
	return !r.unwanted
}

// stopped reports whether the script ends here. It yields the done if the context has ended.
func (r *Run) stopped() bool {
	if r.obstinate {
		return false
	}
	if r.Context.Err() != nil {
		r.Yield(event.New(event.Done{Status: event.DoneInterrupted}), nil)
		return true
	}
	return r.unwanted
}
