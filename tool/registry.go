// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safelog"
)

// Options configures a [Registry]. Nil and the zero value are ready to use.
type Options struct {
	// Before are asked about each call, in order, before the Decider; see [Before].
	Before []Before
	// Decider decides about each call before its handler runs; see also [Registry.DecideBy]. Nil allows all.
	Decider Decider
	// After see each result, in order; see [After].
	After []After
	// Around runs each call, also one that is refused or whose tool is not there; see [Around]. Nil just runs it.
	Around Around
	// Context adds to the context of each call, for what handlers find through a [Key].
	Context func(ctx context.Context, call Call) context.Context
	// Budget bounds all calls together.
	Budget Budget
	// Concurrency bounds how many calls run at once. Zero means no limit.
	Concurrency int
	// Timeout bounds each call whose tool has no lower bound. Zero means none.
	Timeout time.Duration
	// Digests puts digests of input and output into results.
	Digests bool
	// Emit receives each step of each call, in order for one call. It is called by several
	// goroutines and must not block. Events of a served call have the tool's own name, without that
	// of a server; their id is the one that a gate's events have.
	Emit func(event.Event)
	// Logger receives panics and the logs of the handlers. Nil discards.
	Logger *slog.Logger
}

// A Budget bounds all calls of a registry together. Zero means no limit.
type Budget struct {
	// MaxCalls counts the calls that reach a tool.
	MaxCalls int
	// MaxDuration counts from the creation of the registry.
	MaxDuration time.Duration
}

// Before is asked before a call is decided. A decision that denies or asks ends the call, one that
// allows may replace the input; false abstains. A panic denies.
type Before func(ctx context.Context, t *Tool, call Call) (event.Decision, bool)

// After sees each result. Its error is logged and changes nothing: what happened has happened.
type After func(ctx context.Context, t *Tool, call Call, result Result) error

// Around is what a call runs in, such as a transaction. It calls next once and returns the result, or
// another one. Everything about the call happens within next, and in its context: the decision,
// the handler, and each way to fail. When next has returned, call has the input that was decided about.
//
// A panic before next fails the call, one after it changes nothing.
type Around func(ctx context.Context, call *Call, next func(context.Context) Result) Result

// ErrDuplicate is wrapped when a tool is added whose id is taken.
var ErrDuplicate = errors.New("tool: the id is taken; use Replace")

// A Registry holds tools, finds them and runs calls. It is safe for concurrent use.
type Registry struct {
	opts    Options
	created time.Time

	mu        sync.RWMutex
	tools     []*Tool          // in order of registration
	byID      map[string]*Tool // and by name: the one registered last
	bounds    map[*Tool]slots  // of those tools that have any
	decider   Decider
	followers map[int]Follower
	nextID    int

	decided usedIDs
	calls   atomic.Int64
	slots   slots
	running handlers
}

// NewRegistry makes a registry.
func NewRegistry(opts *Options, tools ...*Tool) (*Registry, error) {
	r := &Registry{created: time.Now(), byID: map[string]*Tool{}, followers: map[int]Follower{}}
	if opts != nil {
		r.opts = *opts
	}
	r.decider = r.opts.Decider
	r.decided.used.Size = remembered
	r.opts.Logger = safelog.Logger(r.opts.Logger)
	r.slots = makeSlots(r.opts.Concurrency)
	if err := r.opts.check(); err != nil {
		return nil, err
	}
	if err := r.Add(tools...); err != nil {
		return nil, err
	}
	return r, nil
}

// check refuses limits below zero: they would limit nothing, or everything.
func (o *Options) check() error {
	var errs []error
	for name, negative := range map[string]bool{
		"Budget.MaxCalls": o.Budget.MaxCalls < 0, "Budget.MaxDuration": o.Budget.MaxDuration < 0, "Concurrency": o.Concurrency < 0, "Timeout": o.Timeout < 0,
	} {
		if negative {
			errs = append(errs, advice.Wrap(fmt.Errorf("tool: Options.%s is negative", name), "set a limit above zero, or zero for no limit"))
		}
	}
	return errors.Join(errs...)
}

// MustRegistry is [NewRegistry] for tools written into a program; it panics on an error.
func MustRegistry(opts *Options, tools ...*Tool) *Registry {
	r, err := NewRegistry(opts, tools...)
	if err != nil {
		panic(err)
	}
	return r
}

// DecideBy has d decide about each call from now on, instead of Options.Decider. It is for deciders
// that need to know the registry first, as a gate does. Nil allows all.
func (r *Registry) DecideBy(d Decider) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decider = d
}

// Add adds tools. One whose id is taken is refused with [ErrDuplicate]; then none is added.
//
// A handler may change the tools, as any other code may. The change returns when all followers have taken
// it over: with a server of agent/claudecode the model has an added tool in its very next request, in the same turn.
func (r *Registry) Add(tools ...*Tool) error { return r.put(tools, false) }

// Replace adds tools, and replaces those with the same id.
func (r *Registry) Replace(tools ...*Tool) error { return r.put(tools, true) }

func (r *Registry) put(tools []*Tool, replace bool) error {
	r.mu.Lock()
	all := slices.Clone(r.tools)
	var errs []error
	for i, t := range tools {
		if t == nil {
			errs = append(errs, fmt.Errorf("Invalid tool input: tools[%d] is nil", i)) //nolint:staticcheck // programs compare this text
			continue
		}
		if err := t.Check(); err != nil {
			errs = append(errs, err)
			continue
		}
		own := *t // changes to t from here on change nothing here
		own.settle()
		at := slices.IndexFunc(all, func(old *Tool) bool { return old.ID() == own.ID() })
		switch {
		case at < 0:
			all = append(all, &own)
		case replace:
			all[at] = &own
		default:
			errs = append(errs, fmt.Errorf("%w: %s", ErrDuplicate, own.ID()))
		}
	}
	if err := errors.Join(errs...); err != nil {
		r.mu.Unlock()
		return err
	}
	r.setLocked(all)
	r.mu.Unlock()
	r.notify()
	return nil
}

// Remove removes tools by name or id and reports how many were there.
func (r *Registry) Remove(names ...string) int {
	r.mu.Lock()
	kept := slices.DeleteFunc(slices.Clone(r.tools), func(t *Tool) bool {
		return slices.Contains(names, t.Name) || slices.Contains(names, t.ID())
	})
	n := len(r.tools) - len(kept)
	r.setLocked(kept)
	r.mu.Unlock()
	if n > 0 {
		r.notify()
	}
	return n
}

func (r *Registry) setLocked(tools []*Tool) {
	bounds := map[*Tool]slots{}
	for _, t := range tools {
		if kept := r.bounds[t]; kept != nil {
			bounds[t] = kept
		} else if t.Concurrency > 0 {
			bounds[t] = makeSlots(t.Concurrency)
		}
	}
	r.tools, r.bounds = tools, bounds
	r.byID = make(map[string]*Tool, 2*len(tools))
	for _, t := range tools {
		r.byID[t.Name] = t
	}
	for _, t := range tools {
		r.byID[t.ID()] = t
	}
}

// Lookup finds a tool by its name or its id. Of several with the name it is the one added last. A
// version may be left out of the id only where the tool has none.
func (r *Registry) Lookup(name string) (*Tool, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.byID[name]
	return t, ok
}

// Tools returns all tools in the order in which they were added. They must not be changed.
func (r *Registry) Tools() []*Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.tools)
}

// Watch calls fn after each change of the tools, until stop is called. The change waits for it, as for
// others that watch, which run at the same time. fn must not change the tools.
func (r *Registry) Watch(fn func()) (stop func()) { return r.Follow(Follower{Changed: fn}) }

// A Follower takes over the changes of a registry, as a server of its tools does.
type Follower struct {
	// Changed is called as the function of [Registry.Watch]. It is required.
	Changed func()
	// Withholds reports that a tool does not reach the model: see [Registry.Withheld]. Nil means that it is not known.
	Withholds func(name string) bool
}

// Follow is [Registry.Watch] for servers, which may withhold tools from the model.
func (r *Registry) Follow(f Follower) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.nextID
	r.nextID++
	r.followers[id] = f
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.followers, id)
	}
}

func (r *Registry) following() []Follower {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Values(r.followers))
}

func (r *Registry) notify() {
	all := r.following()
	if len(all) == 1 {
		all[0].Changed()
		return
	}
	var wg sync.WaitGroup
	for _, f := range all {
		wg.Go(f.Changed)
	}
	wg.Wait()
}

// Withheld returns those of the names that are known not to reach a model although the registry has
// them: a [Follower] leaves them out or cannot serve them, or serves an agent that has
// taken no notice of the last change. It is for handlers that add tools and report them to the model.
func (r *Registry) Withheld(names ...string) []string {
	followers := r.following()
	var withheld []string
	for _, name := range names {
		t, ok := r.Lookup(name)
		if ok && t.Served() && slices.ContainsFunc(followers, func(f Follower) bool { return f.Withholds != nil && f.Withholds(name) }) {
			withheld = append(withheld, name)
		}
	}
	return withheld
}
