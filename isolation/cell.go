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

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/launch"
)

// OpenOptions configures a cell for its run.
type OpenOptions struct {
	// RunID names the run in the gateway's logs. Empty means none.
	RunID string
	// Trackers are budgets of this run, beside those of the [Isolation].
	Trackers []*guard.Tracker
	// Judged means that the caller decides about every tool call: the program must not run commands without a question.
	Judged bool
	// Inspect is that of [gateway.RunOptions].
	Inspect func(gateway.Ask) error
	// MaxTurns and SideCallsPerTurn are those of [gateway.RunOptions].
	MaxTurns, SideCallsPerTurn int
	// Emit receives the events of the cell, from any goroutine. Nil discards them.
	Emit func(event.Payload)
}

// A Cell is where one run of a program works: its home, its isolation, its network access. It is safe for concurrent use.
type Cell struct {
	isolation Isolation
	level     Level
	dir       string   // the workspace
	workdir   *os.File // the same as a handle, where it is mounted
	cli       string   // the program that is started; empty if it is not known
	addDirs   []string // of the program, which the agent can write too
	grouped   bool     // the Protection event promises a control group
	guarded   bool     // commands do not reach the memory of the CLI
	home      *Home
	run       *gateway.Run
	proxy     *proxy.Proxy
	trackers  []*guard.Tracker
	emit      func(event.Payload)
	isolator  isolator
	shields   []string       // folders that are read-only because the CLI is in them
	notes     []string       // what else the Protection event reports
	host      launch.Spawner // of the caller, for levels without a jail
	inside    Inside

	pathSetting string // of the program
	config      string // the variable with the folder of its configuration

	serving sync.WaitGroup

	open     context.Context // ends when Close begins
	end      context.CancelFunc
	spawning sync.WaitGroup // starts that Close waits for

	listening sync.Mutex // held while listeners are added, until the program is started
	started   bool

	mu      sync.Mutex
	closers []func() error // last one first
	breach  error
}

// An isolator enforces one isolation level around the program.
type isolator interface {
	addresses() addresses
	// listen opens a listener that the program reaches, and returns its URL. It is called before spawn.
	listen(serve func(net.Listener) error) (url string, err error)
	spawn(ctx context.Context, cmd launch.Command) (launch.Process, error)
}

// addresses are where a program finds what the cell serves. Without a proxy, its address is empty.
type addresses struct {
	gateway             string // http://host:port
	httpProxy, socksURL string
	noProxy             []string
}

// Open makes the cell of one run of a program, which [Cell.Spawn] then starts in it. A nil Isolation is the default one.
// Close must be called when the program has ended.
func (i *Isolation) Open(ctx context.Context, p Program, opts OpenOptions) (_ *Cell, err error) {
	c := i.newCell(p, opts.Emit)
	c.addDirs, c.host = p.AddDirs, p.Spawner
	c.trackers = append(append(c.trackers, c.isolation.Trackers...), opts.Trackers...)
	done := false // not even by a panic in a function of the caller's
	defer func() {
		if !done {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := c.prepare(ctx, p, opts); err != nil {
		return nil, err
	}
	done = true
	return c, nil
}

// newCell is a cell in which nothing is prepared. It must be closed.
func (i *Isolation) newCell(p Program, emit func(event.Payload)) *Cell {
	c := &Cell{emit: emit, cli: p.Path, pathSetting: p.PathSetting, config: p.ConfigVariable}
	if i != nil {
		c.isolation = *i
	}
	c.open, c.end = context.WithCancel(context.Background())
	c.isolation.Host = c.isolation.Host.or(p.HostEnviron)
	if c.emit == nil {
		c.emit = func(event.Payload) {}
	}
	return c
}

func (c *Cell) prepare(ctx context.Context, p Program, opts OpenOptions) error {
	var err error
	if c.level, err = c.decideLevel(ctx, thisMachine(), p.OwnSandbox); err != nil {
		return err
	}
	if err := errors.Join(c.isolation.Validate(c.level, runtime.GOOS), p.check(c.level, &c.isolation)); err != nil {
		return err
	}
	if err := c.openWorkspace(p.Dir); err != nil {
		return err
	}
	if p.Find != nil {
		if c.cli, err = p.Find(c.dir); err != nil {
			return err
		}
	}
	upstream, err := c.openUpstream(ctx, p)
	if err != nil {
		return err
	}
	if err := c.openHome(p, upstream, opts.Judged); err != nil {
		return err
	}
	if err := c.openGateway(p, upstream, opts); err != nil {
		return err
	}
	if c.isolator, err = c.raise(p); err != nil {
		return err
	}
	leftOut, err := c.setVariables(p)
	if err != nil {
		return err
	}
	c.emit(c.describe(upstream.Name(), leftOut))
	return nil
}

func (p Program) check(level Level, i *Isolation) error {
	var errs []error
	if p.Spawner != nil && level != LevelHost {
		errs = append(errs, advice.Wrap(fmt.Errorf("isolation: the Spawner would start the program outside of the %s", level),
			"leave it out, or choose the level host by name"))
	}
	if i.sandbox().Nested && !p.OwnSandbox {
		errs = append(errs, &RefusedError{Field: "Sandbox.Nested", Reason: "the program has no sandbox of its own", Next: "leave it out"})
	}
	if p.Check != nil {
		errs = append(errs, p.Check(level))
	}
	return errors.Join(append(errs, p.ValidateEnv(i.Env))...)
}

// decideLevel also notes why no stronger level than the accepted one is available. A program without a sandbox of its
// own has no isolation at LevelSandbox: it gets LevelHost, and the isolation must accept that level.
func (c *Cell) decideLevel(ctx context.Context, m machine, ownSandbox bool) (Level, error) {
	level, reasons, err := c.isolation.decideLevel(ctx, m)
	for _, reason := range reasons {
		c.notes = append(c.notes, "no stronger level: "+strings.TrimSpace(advice.Text(reason)))
	}
	if err != nil || level != LevelSandbox || ownSandbox {
		return level, err
	}
	if c.isolation.Weakest < LevelHost {
		return level, &RefusedError{
			Field: "Weakest", Reason: "an agent's own sandbox does not isolate other programs, so this program would have no isolation",
			Level: level, GOOS: runtime.GOOS, Next: "run where a cell can be had",
		}
	}
	return LevelHost, nil
}

func (c *Cell) openUpstream(ctx context.Context, p Program) (upstream gateway.Upstream, err error) {
	switch {
	case c.isolation.Upstream != nil:
		upstream = c.isolation.Upstream
	case p.Upstream == nil:
		return nil, &AuthError{Reason: "it is not known where model calls go", Fixes: []string{"set Isolation.Upstream or Program.Upstream"}}
	default:
		if upstream, err = p.Upstream(ctx, &c.isolation); err != nil {
			return nil, err
		}
	}
	if p.Wires != nil && !slices.Contains(p.Wires, upstream.Wire()) {
		return nil, &RefusedError{Field: "Upstream", Reason: fmt.Sprintf("%s speaks another API than the program", upstream.Name()), Next: "use one that the agent's package names"}
	}
	return upstream, nil
}

// openHome makes the home, after those of crashed programs were removed.
func (c *Cell) openHome(p Program, upstream gateway.Upstream, judged bool) error {
	if err := sweepHomes(c.isolation.TempDir, c.isolation.HomePrefix); err != nil { // no reason not to run
		c.notes = append(c.notes, advice.Text(err))
	}
	home, err := NewHome(HomeOptions{c.isolation.TempDir, c.isolation.HomePrefix, p.ConfigDir})
	if err != nil {
		return err
	}
	c.home = home
	c.onClose(home.Close)
	own, sandbox := c.isolation, c.isolation.sandbox()
	sandbox.AskBeforeBash = sandbox.AskBeforeBash || judged
	own.Sandbox = &sandbox
	c.inside = Inside{Level: c.level, Isolation: &own, Program: c.cli, Dir: c.dir, Home: home, Temp: c.temp(), Upstream: upstream}
	if p.Populate != nil {
		notes, err := p.Populate(c.inside)
		if err != nil {
			return err
		}
		c.notes = append(c.notes, notes...)
	}
	if c.isolation.Populate != nil {
		if err := c.isolation.Populate(home); err != nil {
			return fmt.Errorf("isolation: Populate: %w", err)
		}
	}
	return nil
}

// remote is what the model's API may reach for the program: no more than the program itself may, and the tools that it
// names. Without isolation of the network it is anything.
func (c *Cell) remote(tools []string) *gateway.Remote {
	policy := c.isolation.proxyPolicy()
	if c.level > LevelLandlock || slices.Contains(policy.Domains, "*") {
		return nil
	}
	return &gateway.Remote{Host: policy.PermitsName, Tools: tools}
}

func (c *Cell) openGateway(p Program, upstream gateway.Upstream, opts OpenOptions) error {
	g := c.isolation.Gateway
	if g == nil {
		g = gateway.Shared()
	}
	run, err := g.Open(gateway.RunOptions{
		Upstream: upstream, RunID: opts.RunID, Trackers: c.trackers, Inspect: opts.Inspect, Emit: c.emit,
		Remote: c.remote(p.RemoteTools), MaxTurns: opts.MaxTurns, SideCallsPerTurn: opts.SideCallsPerTurn,
	})
	if err != nil {
		return err
	}
	c.run = run
	c.onClose(run.Close)
	if c.proxy, err = proxy.New(c.isolation.proxyPolicy(), &proxy.Options{Emit: c.emit}); err != nil {
		return err
	}
	c.onClose(c.proxy.Close)
	return nil
}

// serve lets a server work on a listener until the cell is closed.
func (c *Cell) serve(l net.Listener, serve func(net.Listener) error) {
	l = twiceClosable{l}
	c.onClose(l.Close)
	c.serving.Go(func() { _ = serve(l) }) // it ends with an error when the listener is closed
}

// A twiceClosable listener can be closed twice, by the cell and by the server on it.
type twiceClosable struct{ net.Listener }

func (l twiceClosable) Close() error {
	_ = l.Listener.Close()
	return nil
}

// onClose adds a function to Close, which calls the last one first.
func (c *Cell) onClose(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closers = append(c.closers, f)
}

var errClosed = advice.Wrap(errors.New("isolation: the cell is closed"), "open another one for each run")

// Spawn implements [launch.Spawner]: it starts the program under the isolation of the cell. A program that is
// starting when Close is called does not run. The program needs the environment of [Cell.Inside].
func (c *Cell) Spawn(ctx context.Context, cmd launch.Command) (launch.Process, error) {
	p, err := c.spawnIsolated(ctx, cmd)
	if err != nil && c.open.Err() != nil && !errors.Is(err, errClosed) {
		err = errors.Join(errClosed, err)
	}
	if err == nil && c.isolation.Started != nil {
		c.isolation.Started(p)
	}
	return p, err
}

func (c *Cell) spawnIsolated(ctx context.Context, cmd launch.Command) (launch.Process, error) {
	if !c.begin() {
		return nil, errClosed
	}
	defer c.spawning.Done()
	c.listening.Lock()
	c.started = true
	c.listening.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	if err := c.home.share(c.configDir(cmd)); err != nil {
		return nil, err
	}
	return c.isolator.spawn(ctx, cmd)
}

// begin makes Close wait for spawning.Done, unless the cell is closed.
func (c *Cell) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Err() != nil {
		return false
	}
	c.spawning.Add(1)
	return true
}

// configDir is the folder of the configuration that a command is started with.
func (c *Cell) configDir(cmd launch.Command) string {
	if c.config == "" {
		return ""
	}
	return variable(cmd.Env, c.config)
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

// Level is the isolation level of the cell.
func (c *Cell) Level() Level { return c.level }

// Inside is what the program finds in the cell.
func (c *Cell) Inside() Inside { return c.inside }

// Home is the home of the program.
func (c *Cell) Home() *Home { return c.home }

// Usage is what the model calls of the run have cost so far, as the gateway counts it.
func (c *Cell) Usage() gateway.Usage { return c.run.Usage() }

// BeginPrompt begins the count of a new prompt; see [gateway.Run.BeginPrompt].
func (c *Cell) BeginPrompt() { c.run.BeginPrompt() }

// Settle waits until model calls whose agent has disconnected are counted; see [gateway.Run.Settle].
func (c *Cell) Settle(d time.Duration) { c.run.Settle(d) }

// WarmUp has the cell answer model calls by itself until end is called; see [gateway.Run.WarmUp].
func (c *Cell) WarmUp() (end func(), ok bool) { return c.run.WarmUp() }

// Trackers are the budgets of the run.
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

// A BreachError has the limit of [Limits] that a run exceeded.
type BreachError struct{ Breach }

func (e *BreachError) Error() string { return "isolation: " + e.Message }

// Advice implements [advice.Adviser].
func (e *BreachError) Advice() string { return e.Next }

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
