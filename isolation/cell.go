// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/launch"
)

// OpenOptions say what a cell must know of its run.
type OpenOptions struct {
	// RunID names the run in the gateway's logs. Empty means none.
	RunID string
	// Trackers are budgets of this run, beside those of the [Isolation].
	Trackers []*guard.Tracker
	// Judged says that somebody decides about every tool call, so that the CLI must not be told to
	// run commands without a question.
	Judged bool
	// Inspect is that of [gateway.RunOptions].
	Inspect func(gateway.Ask) error
	// MaxTurns and SideCallsPerTurn are those of [gateway.RunOptions].
	MaxTurns, SideCallsPerTurn int
	// Emit is told what happens in and around the cell, from any goroutine. Nil means nobody listens.
	Emit func(event.Payload)
}

// A Cell is the place in which one run of the CLI works: its home, its walls, its way out. It is safe
// for concurrent use.
type Cell struct {
	isolation Isolation
	level     Level
	dir       string   // the workspace
	workdir   *os.File // the same as a handle, where it is mounted
	cli       string   // the one that is started; empty if none was found
	addDirs   []string // of the options, which the agent can write too
	grouped   bool     // the event about the walls promises a control group
	guarded   bool     // commands do not reach the memory of the CLI
	home      *Home
	run       *gateway.Run
	proxy     *proxy.Proxy
	trackers  []*guard.Tracker
	emit      func(event.Payload)
	walls     walls
	shields   []string       // folders that are read-only because the CLI is in them
	notes     []string       // what else the event about the walls has to say
	host      launch.Spawner // of the caller, for levels without a jail

	serving sync.WaitGroup

	open     context.Context // ends when Close begins
	end      context.CancelFunc
	spawning sync.WaitGroup // starts that Close waits for

	mu      sync.Mutex
	closers []func() error // last one first
	breach  error
}

// walls are what a level puts around the CLI.
type walls interface {
	// addresses are where the CLI finds the gateway and the proxies.
	addresses() addresses
	// spawn starts the CLI inside.
	spawn(ctx context.Context, cmd launch.Command) (launch.Process, error)
}

// addresses are where a CLI finds what the cell serves. Proxies are empty where there are none.
type addresses struct {
	gateway             string // http://host:port
	httpProxy, socksURL string
	noProxy             []string
}

// Open makes the cell of one run and changes the options of its CLI so that it starts inside. A nil
// Isolation is the default one. Close must be called when the CLI has ended.
//
// The options must not have a Spawner, a User or a Sandbox of their own unless the level is [LevelHost],
// nor settings of the project among their sources: the agent can write those.
func (i *Isolation) Open(ctx context.Context, o *claude.Options, opts OpenOptions) (_ *Cell, err error) {
	if i == nil {
		i = &Isolation{}
	}
	c := &Cell{isolation: *i, emit: opts.Emit, addDirs: o.AddDirs, host: o.Spawner}
	c.open, c.end = context.WithCancel(context.Background())
	if c.isolation.Host.Environ == nil { // the options say what the CLI would find on the host
		around := o.Environ()
		c.isolation.Host.Environ = func() []string { return around }
	}
	if c.emit == nil {
		c.emit = func(event.Payload) {}
	}
	c.trackers = append(append(c.trackers, i.Trackers...), opts.Trackers...)
	done := false // not even by a panic in a function of the caller's
	defer func() {
		if !done {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := c.prepare(ctx, o, opts); err != nil {
		return nil, err
	}
	done = true
	return c, nil
}

// prepare does everything up to the start of the CLI.
func (c *Cell) prepare(ctx context.Context, o *claude.Options, opts OpenOptions) error {
	var err error
	if c.level, err = c.decideLevel(ctx, thisMachine()); err != nil {
		return err
	}
	if err := c.isolation.Validate(c.level, runtime.GOOS); err != nil {
		return err
	}
	if err := checkOptions(c.level, o); err != nil {
		return err
	}
	if err := c.openWorkspace(o.Dir); err != nil {
		return err
	}
	o.Dir = c.dir
	if err := c.chooseCLI(o); err != nil {
		return err
	}
	upstream, err := c.isolation.OpenUpstream(ctx)
	if err != nil {
		return err
	}
	if err := c.openHome(o, opts.Judged); err != nil {
		return err
	}
	if err := c.copyAWS(upstream); err != nil {
		return err
	}
	if err := c.openGateway(o, upstream, opts); err != nil {
		return err
	}
	if c.walls, err = c.raise(o); err != nil {
		return err
	}
	leftOut, err := c.furnish(o, upstream)
	if err != nil {
		return err
	}
	c.emit(c.describe(upstream.Name(), leftOut))
	return nil
}

// decideLevel also notes why there are no stronger walls than those that are accepted.
func (c *Cell) decideLevel(ctx context.Context, m machine) (Level, error) {
	level, reasons, err := c.isolation.decideLevel(ctx, m)
	for _, reason := range reasons {
		c.notes = append(c.notes, "no stronger walls: "+strings.TrimSpace(reason.Error()))
	}
	return level, err
}

// openHome makes the home, after those of crashed programs were removed.
func (c *Cell) openHome(o *claude.Options, judged bool) error {
	if err := sweepHomes(c.isolation.TempDir); err != nil { // no reason not to run
		c.notes = append(c.notes, err.Error())
	}
	home, err := NewHome(c.isolation.TempDir, c.homeOptions(o, judged))
	if err != nil {
		return err
	}
	c.home = home
	c.onClose(home.Close)
	if c.isolation.Furnish != nil {
		if err := c.isolation.Furnish(home); err != nil {
			return fmt.Errorf("isolation: Furnish: %w", err)
		}
	}
	return nil
}

// homeOptions are what the home of a cell is made from.
func (c *Cell) homeOptions(o *claude.Options, judged bool) HomeOptions {
	sandbox := c.isolation.sandbox()
	sandbox.AskBeforeBash = sandbox.AskBeforeBash || judged
	home, _ := c.isolation.Host.home() // without one there is nothing to hide
	return HomeOptions{
		Network: c.isolation.Network, Sandbox: &sandbox, Level: c.level, Workspace: c.dir, AddDirs: o.AddDirs,
		CLI: o.CLIPath, HostHome: home, ProxyPort: httpProxyPort, SOCKSPort: socksProxyPort,
	}
}

// remote is what the model's API may reach for the agent: no more than the agent itself may, and searches if the
// options name the tool for them. Without walls around the network it is anything.
func (c *Cell) remote(o *claude.Options) *gateway.Remote {
	policy := c.isolation.proxyPolicy()
	if c.level > LevelLandlock || slices.Contains(policy.Domains, "*") {
		return nil
	}
	remote := &gateway.Remote{Host: policy.PermitsName}
	for _, tool := range slices.Concat(o.Tools, o.AllowedTools) {
		if name, _, _ := strings.Cut(tool, "("); name == "WebSearch" {
			remote.Tools = []string{"web_search"}
		}
	}
	return remote
}

func (c *Cell) openGateway(o *claude.Options, upstream gateway.Upstream, opts OpenOptions) error {
	g := c.isolation.Gateway
	if g == nil {
		g = gateway.Shared()
	}
	run, err := g.Open(gateway.RunOptions{
		Upstream: upstream, RunID: opts.RunID, Trackers: c.trackers, Inspect: opts.Inspect, Emit: c.emit,
		Remote: c.remote(o), MaxTurns: opts.MaxTurns, SideCallsPerTurn: opts.SideCallsPerTurn,
	})
	if err != nil {
		return err
	}
	c.run = run
	c.onClose(run.Close)
	p, err := proxy.New(c.isolation.proxyPolicy(), &proxy.Options{Emit: c.emit})
	if err != nil {
		return err
	}
	c.proxy = p
	c.onClose(p.Close)
	return nil
}

// serve lets a server work on a listener until the cell is closed.
func (c *Cell) serve(l net.Listener, serve func(net.Listener) error) {
	l = calmListener{l}
	c.onClose(l.Close)
	c.serving.Go(func() { _ = serve(l) }) // it ends with an error when the listener is closed
}

// A calmListener can be closed twice, by the cell and by the server on it.
type calmListener struct{ net.Listener }

func (l calmListener) Close() error {
	_ = l.Listener.Close()
	return nil
}

// onClose adds to what Close does. What was opened last is closed first.
func (c *Cell) onClose(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closers = append(c.closers, f)
}

// errClosed is for who starts something in a cell that is closed.
var errClosed = errors.New("isolation: the cell is closed\n  next: open another one for each run")

// spawn starts a CLI behind the walls. One that Close meets while it starts does not come to run.
func (c *Cell) spawn(ctx context.Context, cmd launch.Command) (launch.Process, error) {
	p, err := c.spawnBehindWalls(ctx, cmd)
	if err != nil && c.open.Err() != nil && !errors.Is(err, errClosed) {
		err = errors.Join(errClosed, err)
	}
	if err == nil && c.isolation.Started != nil {
		c.isolation.Started(p)
	}
	return p, err
}

func (c *Cell) spawnBehindWalls(ctx context.Context, cmd launch.Command) (launch.Process, error) {
	c.mu.Lock()
	if c.open.Err() != nil {
		c.mu.Unlock()
		return nil, errClosed
	}
	c.spawning.Add(1)
	c.mu.Unlock()
	defer c.spawning.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	if err := c.home.share(variable(cmd.Env, claude.EnvConfigDir)); err != nil {
		return nil, err
	}
	return c.walls.spawn(ctx, cmd)
}

// Close ends everything in the cell and removes its home. Calling it again does nothing.
func (c *Cell) Close() error {
	c.mu.Lock()
	c.end() // under the lock, so that no start begins that is not waited for
	c.mu.Unlock()
	c.spawning.Wait()
	c.mu.Lock()
	closers := c.closers
	c.closers = nil
	c.mu.Unlock()
	var errs []error
	for n := len(closers) - 1; n >= 0; n-- {
		errs = append(errs, closers[n]())
	}
	c.serving.Wait()
	return errors.Join(errs...)
}

// Level is the level of the cell's walls.
func (c *Cell) Level() Level { return c.level }

// Home is the home of the CLI.
func (c *Cell) Home() *Home { return c.home }

// Usage is what the model calls of the run have cost so far, as the gateway counts it.
func (c *Cell) Usage() gateway.Usage { return c.run.Usage() }

// BeginPrompt says that the CLI gets a prompt; see [gateway.Run.BeginPrompt].
func (c *Cell) BeginPrompt() { c.run.BeginPrompt() }

// Settle waits until model calls whose agent has gone are counted; see [gateway.Run.Settle].
func (c *Cell) Settle(d time.Duration) { c.run.Settle(d) }

// Practise has the cell answer model calls by itself until end is called; see [gateway.Run.Practise].
func (c *Cell) Practise() (end func(), ok bool) { return c.run.Practise() }

// Trackers are the budgets that the run is held to.
func (c *Cell) Trackers() []*guard.Tracker { return c.trackers }

// Stopped is why the cell has ended the run, or nil: a [*guard.BudgetError], an error that matches
// [guard.ErrDeadlineExceeded], or a [*BreachError].
func (c *Cell) Stopped() error {
	c.mu.Lock()
	breach := c.breach
	c.mu.Unlock()
	if breach != nil {
		return breach
	}
	return c.run.Stopped()
}

// A BreachError says which of its [Limits] a run went beyond.
type BreachError struct{ Breach }

func (e *BreachError) Error() string { return "isolation: " + e.Message }

// stop ends the run because of a breach. The first one counts.
func (c *Cell) stop(b Breach, kill func() error) {
	c.mu.Lock()
	first := c.breach == nil
	if first {
		c.breach = &BreachError{b}
	}
	c.mu.Unlock()
	if first {
		c.emit(b)
		if c.run != nil { // a command has no model
			c.run.Stop(&BreachError{b})
		}
	}
	_ = kill() // what has ended cannot be killed
}
