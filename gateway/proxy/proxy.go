// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safelog"
)

const (
	// handshakeTimeout is how long a client may take to send its request.
	handshakeTimeout = 30 * time.Second
	// maxHeader bounds the header of a request, maxResponseHeader that of an answer.
	maxHeader         = 64 << 10
	maxResponseHeader = 1 << 20
	// maxRefusing is how many connections above the limit get a refusal. They have refusingTimeout to read it.
	maxRefusing     = 16
	refusingTimeout = 5 * time.Second
)

// Options configures a [Proxy]. The zero value is ready to use.
type Options struct {
	// Emit receives a [Connection] for every attempt. It is called by one goroutine, without a lock
	// held; a slow one does not delay connections, but Close waits for it. Nil discards them.
	Emit func(event.Payload)
	// Resolve gives the addresses of a host, in lower-case ASCII without a final dot. It must heed ctx. Nil asks the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects with a checked address: network is "tcp", addr a literal address and port. It must heed ctx. Nil dials.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// MaxConnections bounds the connections of clients at one time. Zero means 256.
	MaxConnections int
	// Logger receives diagnostics. Nil discards them.
	Logger *slog.Logger
	// IdleTimeout ends a connection through which nothing went for so long. Zero means 10 minutes.
	IdleTimeout time.Duration
	// DialTimeout bounds lookup and dialling together. Zero means 30 seconds.
	DialTimeout time.Duration
}

func (o *Options) orDefaults() Options {
	var filled Options
	if o != nil {
		filled = *o
	}
	if filled.Resolve == nil {
		filled.Resolve = resolveSystem
	}
	if filled.Dial == nil {
		filled.Dial = new(net.Dialer).DialContext
	}
	if filled.MaxConnections <= 0 {
		filled.MaxConnections = 256
	}
	filled.Logger = safelog.Logger(filled.Logger)
	if filled.IdleTimeout <= 0 {
		filled.IdleTimeout = 10 * time.Minute
	}
	if filled.DialTimeout <= 0 {
		filled.DialTimeout = 30 * time.Second
	}
	return filled
}

// A Proxy lets tools reach what its policy permits. It is safe for concurrent use.
type Proxy struct {
	rules        *rules
	options      Options
	events       *reporter
	http         *http.Server
	ownAddresses func() []netip.Addr

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu       sync.Mutex
	closed   bool
	working  sync.WaitGroup         // goroutines that may still report; grows under mu, until closed
	open     map[io.Closer]struct{} // listeners and connections
	clients  int                    // how many of them are inbound and served
	refusing int                    // how many of them are inbound and above the limit
}

// New makes a proxy for a policy; nil options mean the zero value. [Proxy.Close] must be called.
func New(p Policy, o *Options) (*Proxy, error) {
	rules, err := p.compile()
	if err != nil {
		return nil, err
	}
	options := o.orDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	proxy := &Proxy{
		rules: rules, options: options, events: newReporter(options.Emit), ownAddresses: ownAddresses,
		ctx: ctx, cancel: cancel, open: map[io.Closer]struct{}{},
	}
	proxy.http = proxy.newServer()
	return proxy, nil
}

// Serve accepts connections on l until Close, then returns nil, or until l fails. It closes l. Calls may be concurrent.
func (p *Proxy) Serve(l net.Listener) error {
	if !p.enter() {
		_ = l.Close()
		return nil
	}
	defer p.working.Done()
	if !p.track(l) {
		_ = l.Close()
		return nil
	}
	defer p.forget(l)
	defer l.Close()
	var pause time.Duration
	for {
		conn, err := l.Accept()
		switch {
		case p.ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case isTemporary(err):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			p.options.Logger.Warn("proxy: accepting a connection; trying again", "error", err, "pause", pause)
			p.sleep(pause)
		case err != nil:
			return err
		default:
			pause = 0
			p.take(conn)
		}
	}
}

// isTemporary is for errors such as too many open files, which pass.
func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

func (p *Proxy) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-p.ctx.Done():
	}
}

func (p *Proxy) take(conn net.Conn) {
	c := &inbound{Conn: conn, proxy: p, closed: make(chan struct{})}
	if !p.register(c) {
		_ = conn.Close()
		if p.enter() {
			p.attempt("", "", 0).refuse(tooMany(p.options.MaxConnections))
			p.working.Done()
		}
		return
	}
	go func() {
		defer p.working.Done()
		p.serve(c)
	}()
}

// register counts a new connection. It reports whether it is served.
func (p *Proxy) register(c *inbound) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.busy = p.clients >= p.options.MaxConnections
	if p.closed || c.busy && p.refusing >= maxRefusing {
		return false
	}
	*p.countLocked(c)++
	p.open[c] = struct{}{}
	p.working.Add(1)
	return true
}

// countLocked is the number to which a connection belongs.
func (p *Proxy) countLocked(c *inbound) *int {
	if c.busy {
		return &p.refusing
	}
	return &p.clients
}

func (p *Proxy) serve(c *inbound) {
	defer c.Close()
	if c.busy {
		defer time.AfterFunc(refusingTimeout, func() { _ = c.Close() }).Stop()
	}
	first, err := c.sniff()
	if err != nil {
		return
	}
	switch first {
	case 4:
		p.serveSOCKS4(c)
	case 5:
		p.serveSOCKS5(c)
	default:
		// It returns when the connection is closed.
		_ = p.http.Serve(&single{conn: c})
	}
}

// enter reports whether work may begin; working.Done ends it.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.working.Add(1)
	return true
}

// track remembers what Close has to close. It reports whether it is still time.
func (p *Proxy) track(c io.Closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.open[c]; !known {
		return
	}
	delete(p.open, c)
	if c, client := c.(*inbound); client {
		*p.countLocked(c)--
	}
}

// Close ends all listeners and connections, and returns when all attempts are reported. Options.Emit must not call it.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	open := make([]io.Closer, 0, len(p.open))
	for c := range p.open {
		open = append(open, c)
	}
	p.mu.Unlock()
	p.cancel()
	for _, c := range open {
		_ = c.Close()
	}
	_ = p.http.Close()
	p.working.Wait()
	p.events.close()
	return nil
}
