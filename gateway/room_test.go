// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover/gateway"
)

// A countingListener counts the connections that were accepted.
type countingListener struct {
	net.Listener
	accepted atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return c, err
}

// An agent that opens connections without end takes only so many open files of this program, and its
// run goes on when it lets go of them.
func TestAFloodOfConnectionsWaitsOutside(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &countingListener{Listener: plain}
	run, err := gateway.Shared().Open(gateway.RunOptions{Upstream: gateway.Anthropic(gateway.APIKey("fake-key"))})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- run.Serve(l) }()
	var flood []net.Conn
	for range 400 {
		c, err := net.Dial("tcp", plain.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		flood = append(flood, c)
	}
	const room = 256
	for end := time.Now().Add(5 * time.Second); l.accepted.Load() < room && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if got := l.accepted.Load(); got != room {
		t.Errorf("%d connections of 400 are open, want %d", got, room)
	}
	for _, c := range flood {
		_ = c.Close()
	}
	resp, err := http.Get("http://" + plain.Addr().String() + "/v1/messages")
	if err != nil {
		t.Fatalf("after the flood: %v", err)
	}
	_ = resp.Body.Close()
	if err := run.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, gateway.ErrClosed) {
		t.Errorf("Serve: got %v, want %v", err, gateway.ErrClosed)
	}
}

// A run that is closed while connections wait ends all the same.
func TestAFullRunCanBeClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	run, err := gateway.Shared().Open(gateway.RunOptions{Upstream: gateway.Anthropic(gateway.APIKey("fake-key"))})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- run.Serve(l) }()
	for range 300 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	if err := run.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, gateway.ErrClosed) {
		t.Errorf("Serve: got %v, want %v", err, gateway.ErrClosed)
	}
}
