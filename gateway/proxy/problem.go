// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"

	"github.com/drover-agents/drover/advice"
)

// The replies of SOCKS5 (RFC 1928, section 6).
const (
	socksGranted            = 0
	socksGeneralFailure     = 1
	socksNotAllowed         = 2
	socksNetworkUnreachable = 3
	socksHostUnreachable    = 4
	socksRefused            = 5
	socksExpired            = 6
	socksUnknownCommand     = 7
	socksUnknownAddress     = 8
)

// A problem is the reason why an attempt failed, with the code of each protocol for it.
type problem struct {
	verdict Verdict
	status  int  // of HTTP
	socks   byte // of SOCKS5
	// reason and next are for the client; detail is for the event only, since it can name addresses of the network outside.
	reason, next, detail string
	address              netip.Addr
}

func denied(reason, next string) *problem {
	return &problem{verdict: Denied, status: http.StatusForbidden, socks: socksNotAllowed, reason: reason, next: next}
}

func malformed(reason string) *problem {
	return &problem{
		verdict: Denied, status: http.StatusBadRequest, socks: socksNotAllowed,
		reason: "the request is not understood: " + reason,
		next:   `ask for "host:port", with a plain host name or an address in its usual spelling`,
	}
}

func tooMany(limit int) *problem {
	return &problem{
		verdict: Denied, status: http.StatusServiceUnavailable, socks: socksGeneralFailure,
		reason: fmt.Sprintf("there are already %d connections, which is the limit", limit),
		next:   "end some connections, then try again",
	}
}

// unreachable sorts the error of a lookup or of dialling.
func unreachable(err error) *problem {
	p := &problem{
		verdict: Failed, status: http.StatusBadGateway, socks: socksGeneralFailure,
		reason: "the host could not be reached", next: "check the host and the port, or try again later", detail: err.Error(),
	}
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		p.reason, p.socks = textNotFound, socksHostUnreachable
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout():
		p.reason, p.status, p.socks = textTimeout, http.StatusGatewayTimeout, socksExpired
	case errors.As(err, &dns):
		p.reason, p.socks = textLookup, socksHostUnreachable
	case errors.Is(err, syscall.ECONNREFUSED):
		p.reason, p.socks = textRefused, socksRefused
	case errors.Is(err, syscall.ENETUNREACH):
		p.reason, p.socks = textNoNetwork, socksNetworkUnreachable
	case errors.Is(err, syscall.EHOSTUNREACH):
		p.socks = socksHostUnreachable
	}
	return p
}

// body is what a client reads of the problem.
func (p *problem) body(where string) string {
	text := fmt.Sprintf("%s is %s: %s", where, p.verdict, p.reason)
	if p.verdict == Failed {
		text = fmt.Sprintf("%s failed: %s", where, p.reason)
	}
	return advice.Render(text, p.next) + "\n"
}
