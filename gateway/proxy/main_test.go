// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The pretended world outside: names and their addresses. What is dialled is led to a server of the
// test on loopback.
var names = map[string]string{
	"example.com":       "93.184.216.34",
	"www.example.com":   "93.184.216.35",
	"example.org":       "2606:2800:220:1::1",
	"other.example":     "93.184.216.36",
	"two.example":       "93.184.216.37 2606:2800:220:1::2",
	"xn--bcher-kva.org": "93.184.216.38",
	"private.example":   "10.0.0.5",
	"mixed.example":     "93.184.216.37 192.168.1.1",
	"meta.example":      "169.254.169.254",
	"loop.example":      "127.0.0.1",
	"loop6.example":     "::1",
	"mapped.example":    "::ffff:127.0.0.1",
	"mapped.public":     "::ffff:93.184.216.40",
	"nat64.example":     "64:ff9b::7f00:1",
	"sixtofour.example": "2002:7f00:1::1",
	"zone.example":      "fe80::1%eth0",
	"own.example":       "93.184.216.99",
	"none.example":      "",
}

// A world is a proxy, the listener through which it is used, and what it looked up, dialled and reported.
type world struct {
	t     *testing.T
	proxy *Proxy
	addr  string

	mu           sync.Mutex
	looked       []string
	dialled      []string
	reported     []Connection
	reportedMore chan struct{}
}

// newWorld serves a proxy whose every connection ends at backend, which may be nil.
func newWorld(t *testing.T, policy Policy, backend net.Addr, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, reportedMore: make(chan struct{}, 1000)}
	options := &Options{Emit: w.emit, Resolve: w.resolve}
	options.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		w.note(&w.dialled, addr)
		if backend == nil {
			return nil, fmt.Errorf("dial %s: no server is there", addr)
		}
		return new(net.Dialer).DialContext(ctx, network, backend.String())
	}
	if change != nil {
		change(options)
	}
	var err error
	if w.proxy, err = New(policy, options); err != nil {
		t.Fatal(err)
	}
	w.proxy.ownAddresses = func() []netip.Addr { return []netip.Addr{netip.MustParseAddr(names["own.example"])} }
	t.Cleanup(func() { w.proxy.Close() })
	l := listen(t)
	w.addr = l.Addr().String()
	go w.proxy.Serve(l)
	return w
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (w *world) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	w.note(&w.looked, host)
	text, known := names[host]
	if !known {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.9.9:53", IsNotFound: true}
	}
	var addrs []netip.Addr
	for _, word := range strings.Fields(text) {
		addrs = append(addrs, netip.MustParseAddr(word))
	}
	return addrs, nil
}

func (w *world) note(list *[]string, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, what)
}

func (w *world) emit(p event.Payload) {
	w.mu.Lock()
	w.reported = append(w.reported, p.(Connection))
	w.mu.Unlock()
	w.reportedMore <- struct{}{}
}

// next waits for the next event and gives it without its duration.
func (w *world) next() Connection {
	w.t.Helper()
	select {
	case <-w.reportedMore:
	case <-time.After(10 * time.Second):
		w.t.Fatal("no event came")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.reported[0]
	w.reported = w.reported[1:]
	c.Duration = 0
	return c
}

// quiet fails the test if there is an event that it did not take.
func (w *world) quiet() {
	w.t.Helper()
	w.proxy.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.reported) > 0 {
		w.t.Errorf("also reported: %+v", w.reported)
	}
}

// lists are copies of what was looked up and dialled.
func (w *world) lists() (looked, dialled []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.looked...), append([]string(nil), w.dialled...)
}

// A wire is a raw connection with the proxy.
type wire struct {
	net.Conn
	*bufio.Reader
	t *testing.T
}

func (w *wire) Read(b []byte) (int, error) { return w.Reader.Read(b) }

func (w *world) dial() *wire {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	return &wire{conn, bufio.NewReader(conn), w.t}
}

func (w *wire) send(text string) *wire {
	w.t.Helper()
	if _, err := io.WriteString(w.Conn, text); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// expect reads exactly as much as want has.
func (w *wire) expect(want string) *wire {
	w.t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(w, got); err != nil || string(got) != want {
		w.t.Fatalf("read %q, %v; want %q", got[:n], err, want)
	}
	return w
}

// answer reads an HTTP response with its body.
func (w *wire) answer(method string) (int, string) {
	w.t.Helper()
	res, err := http.ReadResponse(w.Reader, &http.Request{Method: method})
	if err != nil {
		w.t.Fatal(err)
	}
	if method == http.MethodConnect && res.StatusCode == http.StatusOK {
		return res.StatusCode, "" // what follows is the tunnel
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// echo is a server that sends back what it gets, up to the end of it.
func echo(t testing.TB) net.Addr {
	l := listen(t)
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { l.Close() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				io.Copy(conn, conn)
			})
		}
	})
	return l.Addr()
}

// web is a server whose handler is of the test.
func web(t testing.TB, handler http.HandlerFunc) net.Addr {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr()
}

const established = "HTTP/1.1 200 Connection established\r\n\r\n"
