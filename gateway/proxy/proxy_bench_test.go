// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
)

// benchProxy serves a proxy that leads everything to backend, and dials through it.
func benchProxy(b *testing.B, backend net.Addr) func() net.Conn {
	p, err := New(Policy{Domains: []string{"example.com"}}, &Options{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, backend.String())
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	l := listen(b)
	go p.Serve(l)
	return func() net.Conn {
		conn := benchDial(b, l.Addr())
		io.WriteString(conn, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
		if _, err := io.ReadFull(conn, make([]byte, len(established))); err != nil {
			b.Fatal(err)
		}
		return conn
	}
}

func benchDial(b *testing.B, addr net.Addr) net.Conn {
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// benchWays are a connection through the proxy and one without it.
func benchWays(b *testing.B, backend net.Addr, run func(b *testing.B, dial func() net.Conn)) {
	b.Run("direct", func(b *testing.B) { run(b, func() net.Conn { return benchDial(b, backend) }) })
	b.Run("connect", func(b *testing.B) { run(b, benchProxy(b, backend)) })
}

// BenchmarkThroughput is how fast a large file comes down.
func BenchmarkThroughput(b *testing.B) {
	const size = 64 << 20
	backend := web(b, func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 256<<10)
		for range size / len(chunk) {
			w.Write(chunk)
		}
	})
	benchWays(b, backend, func(b *testing.B, dial func() net.Conn) {
		b.SetBytes(size)
		for b.Loop() {
			conn := dial()
			io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
			if n, _ := io.Copy(io.Discard, conn); n < size {
				b.Fatalf("got %d bytes", n)
			}
			conn.Close()
		}
	})
}

// BenchmarkRoundTrip is how long a small message takes there and back on an open connection.
func BenchmarkRoundTrip(b *testing.B) {
	benchWays(b, echo(b), func(b *testing.B, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		message := make([]byte, 100)
		for b.Loop() {
			conn.Write(message)
			io.ReadFull(conn, message)
		}
	})
}

// BenchmarkOpen is how long it takes to open a connection and to have one byte back.
func BenchmarkOpen(b *testing.B) {
	benchWays(b, echo(b), func(b *testing.B, dial func() net.Conn) {
		for b.Loop() {
			conn := dial()
			conn.Write([]byte("x"))
			io.ReadFull(conn, make([]byte, 1))
			conn.Close()
		}
	})
}

// BenchmarkDenied is how long a refusal takes.
func BenchmarkDenied(b *testing.B) {
	p, err := New(Policy{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	l := listen(b)
	go p.Serve(l)
	conn := benchDial(b, l.Addr())
	defer conn.Close()
	r := bufio.NewReader(conn)
	for b.Loop() {
		io.WriteString(conn, "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
	}
}
