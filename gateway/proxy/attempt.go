// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// An attempt is one request for a connection, from its arrival to its end. It has one event.
type attempt struct {
	proxy *Proxy
	begun time.Time
	event Connection
	where string // host:port for the client to read
}

func (p *Proxy) attempt(protocol Protocol, written string, port uint16) *attempt {
	a := &attempt{proxy: p, begun: time.Now(), event: Connection{Protocol: protocol}}
	a.event.Host = printable(written, maxEventHost)
	a.event.Port = int(port)
	a.where = a.event.Host
	if a.where == "" {
		a.where = "a request without a host"
	}
	return a
}

// understood replaces what the client wrote by what it means.
func (a *attempt) understood(t target) {
	a.event.Host, a.event.Port, a.where = t.host.String(), int(t.port), t.String()
}

func (a *attempt) refuse(p *problem) *problem {
	a.event.Verdict, a.event.Reason = p.verdict, p.reason
	if p.detail != "" {
		a.event.Reason = printable(p.reason+": "+p.detail, maxEventReason)
	}
	if p.address.IsValid() {
		a.event.Address = p.address.String()
	}
	a.report()
	return p
}

// end reports an allowed attempt; reason is empty if it ended normally.
func (a *attempt) end(out *outbound, reason string) {
	a.event.Verdict, a.event.Reason = Allowed, reason
	a.count(out)
	a.report()
}

func (a *attempt) count(out *outbound) {
	a.event.BytesUp, a.event.BytesDown = out.up.Load(), out.down.Load()
}

func (a *attempt) report() {
	a.event.Duration = time.Since(a.begun)
	a.proxy.events.report(a.event)
}

// open checks the target and connects with it. A problem has been reported already.
func (a *attempt) open(ctx context.Context, t target) (*outbound, *problem) {
	a.understood(t)
	ctx, cancel := context.WithTimeout(ctx, a.proxy.options.DialTimeout)
	defer cancel()
	addrs, problem := a.proxy.admit(ctx, t)
	if problem != nil {
		return nil, a.refuse(problem)
	}
	conn, addr, err := a.proxy.dialAny(ctx, addrs, t.port)
	if err != nil {
		return nil, a.refuse(unreachable(err))
	}
	a.event.Address = netip.AddrPortFrom(addr, t.port).String()
	out := &outbound{Conn: conn}
	if !a.proxy.track(out) {
		_ = conn.Close()
		return nil, a.refuse(unreachable(net.ErrClosed))
	}
	return out, nil
}

// admit gives the addresses that may be dialled for a target. Only a host that is permitted is looked up.
func (p *Proxy) admit(ctx context.Context, t target) ([]netip.Addr, *problem) {
	if problem := p.admitHost(t.host); problem != nil {
		return nil, problem
	}
	if !p.rules.permitsPort(t.port) {
		return nil, denied(fmt.Sprintf(textPort, t.port), fmt.Sprintf(textPortNext, t.port))
	}
	switch {
	case t.addr.IsValid():
		return []netip.Addr{t.addr}, nil
	case t.isLocalhost():
		return []netip.Addr{loopback4, netip.IPv6Loopback()}, nil
	}
	return p.lookUp(ctx, t.name)
}

func (p *Proxy) admitHost(h host) *problem {
	switch {
	case h.isLocalhost():
		if !p.rules.localhost {
			return denied(textLocal, textLocalNext)
		}
	case h.addr.IsValid():
		return p.admitLiteral(h.addr)
	case !p.rules.permitsName(h.name):
		return denied(textHost, fmt.Sprintf(textHostNext, h))
	}
	return nil
}

// admitLiteral judges an address that the client itself wrote.
func (p *Proxy) admitLiteral(addr netip.Addr) *problem {
	if p.rules.addrs[addr] {
		return nil
	}
	what := p.notOutside(addr)
	if what == "" && p.rules.everything {
		return nil
	}
	next := fmt.Sprintf(textHostNext, addr)
	switch {
	case what == "":
		return denied(textAddress, next)
	case notPublic(addr) == "" || listable(addr):
		return denied(fmt.Sprintf(textKind, what), next)
	}
	return denied(fmt.Sprintf(textKind, what), textKindNext)
}

// lookUp gives the checked addresses of a name. An answer of public and other addresses is refused: no honest name has both.
func (p *Proxy) lookUp(ctx context.Context, name string) ([]netip.Addr, *problem) {
	answer, err := p.options.Resolve(ctx, name)
	if err == nil && len(answer) == 0 {
		err = errors.New("the answer has no address")
	}
	if err != nil {
		return nil, unreachable(err)
	}
	addrs := make([]netip.Addr, len(answer))
	for i, addr := range answer {
		addrs[i] = addr.Unmap()
		if what := p.notOutside(addrs[i]); what != "" {
			problem := denied(fmt.Sprintf(textNameKind, what), textNameKindNext)
			problem.address = addrs[i]
			return nil, problem
		}
	}
	return addrs, nil
}

// notOutside describes an address that is not in the public network.
func (p *Proxy) notOutside(addr netip.Addr) string {
	if what := notPublic(addr); what != "" {
		return what
	}
	if slices.Contains(p.ownAddresses(), addr) {
		return "an address of the machine outside of the cell"
	}
	return ""
}

// maxDialled is how many addresses of a name are tried.
const maxDialled = 8

// dialAny connects with the first address that answers. Each gets its share of the time that is
// left, so that a dead one does not use up the time of the others.
func (p *Proxy) dialAny(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, netip.Addr, error) {
	addrs = addrs[:min(len(addrs), maxDialled)]
	var first error
	for i, addr := range addrs {
		conn, err := p.dial(ctx, netip.AddrPortFrom(addr, port), len(addrs)-i)
		if err == nil {
			return conn, addr, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, netip.Addr{}, first
}

func (p *Proxy) dial(ctx context.Context, addr netip.AddrPort, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		share := time.Until(deadline) / time.Duration(left)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	return p.options.Dial(ctx, "tcp", addr.String())
}

// resolveSystem asks the system's resolver. The final dot keeps it from the search domains, which would be other names.
func resolveSystem(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
}
