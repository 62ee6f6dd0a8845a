// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

type inbound struct {
	net.Conn
	proxy *Proxy
	// busy means that there are too many connections: each request is refused.
	busy bool
	// first is the byte that identified the protocol; it is read again. Only one goroutine reads.
	first   [1]byte
	pending bool

	closing sync.Once
	closed  chan struct{}
}

// sniff waits for the first byte. The time for the handshake begins here.
func (c *inbound) sniff() (byte, error) {
	_ = c.SetReadDeadline(time.Now().Add(handshakeTimeout))
	if _, err := io.ReadFull(c.Conn, c.first[:]); err != nil {
		return 0, err
	}
	c.pending = true
	return c.first[0], nil
}

func (c *inbound) Read(b []byte) (int, error) {
	if c.pending && len(b) > 0 {
		c.pending = false
		return copy(b, c.first[:]), nil
	}
	return c.Conn.Read(b)
}

// Write fails if the client takes nothing for as long as a connection may be idle.
func (c *inbound) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.proxy.options.IdleTimeout))
	return c.Conn.Write(b)
}

// CloseWrite ends the data for the client.
func (c *inbound) CloseWrite() error { return closeWrite(c.Conn) }

// Close may be called more than once.
func (c *inbound) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		err = c.Conn.Close()
		c.proxy.forget(c)
		close(c.closed)
	})
	return err
}

// An outbound is a connection with a permitted address, with counts of what went through it.
type outbound struct {
	net.Conn
	up, down atomic.Int64
	used     atomic.Int64 // when bytes went through last, in nanoseconds since the epoch
}

func (c *outbound) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.note(&c.down, n)
	return n, err
}

// Write counts before it writes: the host may have answered, and the attempt be over, before the write returns.
func (c *outbound) Write(b []byte) (int, error) {
	c.note(&c.up, len(b))
	n, err := c.Conn.Write(b)
	c.up.Add(int64(n - len(b)))
	return n, err
}

func (c *outbound) note(count *atomic.Int64, n int) {
	if n > 0 {
		count.Add(int64(n))
		c.used.Store(time.Now().UnixNano())
	}
}

// CloseWrite ends the data for the host.
func (c *outbound) CloseWrite() error { return closeWrite(c.Conn) }

// whenIdle calls stop once no byte went either way for limit. The result ends the watch and reports whether stop was called.
func (c *outbound) whenIdle(limit time.Duration, stop func()) (end func() bool) {
	c.used.Store(time.Now().UnixNano())
	var mu sync.Mutex
	var fired, ended bool
	var timer *time.Timer
	check := func() {
		mu.Lock()
		defer mu.Unlock()
		left := limit - time.Since(time.Unix(0, c.used.Load()))
		switch {
		case ended:
		case left > 0:
			timer.Reset(left)
		default:
			fired = true
			stop()
		}
	}
	mu.Lock()
	timer = time.AfterFunc(limit, check)
	mu.Unlock()
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		timer.Stop()
		return fired
	}
}

// closeWrite closes one direction where the connection has two, and all of it elsewhere.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// copyBuffers are for tunnels. Each tunnel uses two.
var copyBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// tunnel passes bytes both ways until both are at their end, and closes both connections. Early is
// what the client has already sent. It returns why the tunnel ended before its time, or empty.
func (p *Proxy) tunnel(in *inbound, out *outbound, early []byte) string {
	both := func() {
		_ = in.Close()
		_ = out.Close()
	}
	defer both()
	idle := out.whenIdle(p.options.IdleTimeout, both)
	var up sync.WaitGroup
	up.Go(func() {
		if len(early) > 0 {
			if _, err := out.Write(early); err != nil {
				both()
				return
			}
		}
		pass(out, in, both)
	})
	pass(in, out, both)
	up.Wait()
	switch {
	case idle():
		return "nothing went through it for " + p.options.IdleTimeout.String()
	case p.ctx.Err() != nil:
		return "the proxy was closed"
	}
	return ""
}

// pass copies one direction, then closes it. An error of either side ends both directions.
func pass(to interface {
	io.Writer
	CloseWrite() error
}, from io.Reader, both func(),
) {
	buffer := copyBuffers.Get().(*[64 << 10]byte)
	defer copyBuffers.Put(buffer)
	if _, err := io.CopyBuffer(to, from, buffer[:]); err != nil {
		both()
		return
	}
	if err := to.CloseWrite(); err != nil && !errors.Is(err, net.ErrClosed) {
		both()
	}
}
