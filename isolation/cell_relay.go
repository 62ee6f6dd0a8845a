// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway/proxy"
)

const (
	// maxRelayed bounds the connections with a proxy of the caller's at one time, as Drover's own proxy does.
	maxRelayed       = 256
	relayDialTimeout = 30 * time.Second
)

// proxyOr serves Drover's proxy or, if the port is not zero, relays to the caller's proxy on the host's loopback.
func (c *Cell) proxyOr(port int) func(net.Listener) error {
	if port == 0 {
		return c.proxy.Serve
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.onClose(func() error {
		cancel()
		return nil
	})
	r := &relay{ctx: ctx, to: netip.AddrPortFrom(loopback, uint16(port)), emit: c.emit, room: make(chan struct{}, maxRelayed)}
	return r.serve
}

// A relay passes connections to one server, and reports each. It does not read their data.
type relay struct {
	ctx  context.Context // ends all connections
	to   netip.AddrPort
	emit func(event.Payload)
	room chan struct{}
}

// serve returns when the listener is closed and every connection has ended.
func (r *relay) serve(l net.Listener) error {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		select {
		case r.room <- struct{}{}:
			open.Go(func() {
				defer func() { <-r.room }()
				r.pass(conn)
			})
		default:
			_ = conn.Close()
			r.report(proxy.Connection{Verdict: proxy.Denied, Reason: fmt.Sprintf("there are %d connections already", maxRelayed)}, time.Now())
		}
	}
}

// pass serves one connection and closes it.
func (r *relay) pass(in net.Conn) {
	begun := time.Now()
	defer func() { _ = in.Close() }()
	dialer := net.Dialer{Timeout: relayDialTimeout}
	out, err := dialer.DialContext(r.ctx, "tcp", r.to.String())
	if err != nil {
		r.report(proxy.Connection{Verdict: proxy.Failed, Reason: "the proxy of NetworkPolicy cannot be reached: " + err.Error()}, begun)
		return
	}
	both := func() { _, _ = in.Close(), out.Close() }
	defer both()
	defer context.AfterFunc(r.ctx, both)()
	done := proxy.Connection{Verdict: proxy.Allowed, Address: r.to.String()}
	var up sync.WaitGroup
	up.Go(func() { done.BytesUp = copyHalf(out, in, both) })
	down := copyHalf(in, out, both)
	up.Wait()
	done.BytesDown = down
	if r.ctx.Err() != nil {
		done.Reason = "the cell was closed"
	}
	r.report(done, begun)
}

// copyHalf copies one direction to its end and closes it; trouble ends both.
func copyHalf(to, from net.Conn, both func()) int64 {
	n, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		both()
	}
	return n
}

func (r *relay) report(c proxy.Connection, begun time.Time) {
	c.Host, c.Port = r.to.Addr().String(), int(r.to.Port())
	c.Duration = time.Since(begun)
	r.emit(c)
}
