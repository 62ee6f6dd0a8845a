// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestModelText_MalformedRequests(t *testing.T) {
	w := newWorld(t, Policy{Domains: []string{"*"}}, nil, nil)
	for text, want := range map[string]string{
		"GET / HTTP/1.1":                                             `this is a proxy; send "GET http://host/path" or CONNECT`,
		"GET https://example.com/ HTTP/1.1":                          "the proxy forwards only http; use CONNECT for other protocols",
		"GET http://user@example.com/ HTTP/1.1":                      "write the host as a plain name, without user and escapes",
		"GET http://example.com:0/ HTTP/1.1":                         "the port must be a number from 1 to 65535",
		"CONNECT example.com:443 HTTP/1.1\r\nContent-Length: 11\r\n": "a CONNECT request must have no body",
	} {
		if status, body := w.dial().send(text + "\r\nHost: x\r\n\r\n").answer("GET"); status != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %q, want %q", text, status, body, want)
		}
	}
}

func TestModelText_UnreachableHosts(t *testing.T) {
	for want, err := range map[string]error{
		"there is no host of this name": &net.DNSError{IsNotFound: true}, "the name could not be resolved": &net.DNSError{},
		"the host did not answer in time": context.DeadlineExceeded, "the host refused the connection": syscall.ECONNREFUSED,
		"the network of the host is unreachable": syscall.ENETUNREACH, "the host could not be reached": errors.New("other"),
	} {
		if got := unreachable(err).body("x:1"); !strings.HasPrefix(got, "x:1 failed: "+want+"\n") {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
}
