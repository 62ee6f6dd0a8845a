// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/event"
)

// A pipeListener accepts connections in memory, so that their time is that of the test.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}

// A pipeWorld is a proxy in memory. Hosts are the other ends of what it dialled.
type pipeWorld struct {
	proxy    *Proxy
	listener *pipeListener
	hosts    chan net.Conn
	reported chan Connection
}

// inBubble runs a test with a clock of its own.
func inBubble(t *testing.T, change func(*Options), test func(t *testing.T, w *pipeWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{
			listener: &pipeListener{make(chan net.Conn), make(chan struct{})},
			hosts:    make(chan net.Conn, 100), reported: make(chan Connection, 100),
		}
		options := &Options{
			Emit: func(p event.Payload) { w.reported <- p.(Connection) },
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
			},
			Dial: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				w.hosts <- theirs
				return ours, nil
			},
			IdleTimeout: time.Minute, DialTimeout: 20 * time.Second,
		}
		if change != nil {
			change(options)
		}
		var err error
		if w.proxy, err = New(Policy{Domains: []string{"*"}}, options); err != nil {
			t.Fatal(err)
		}
		go w.proxy.Serve(w.listener)
		defer w.proxy.Close()
		test(t, w)
	})
}

func (w *pipeWorld) dial() net.Conn {
	ours, theirs := net.Pipe()
	w.listener.conns <- theirs
	return ours
}

// lasts is how long it takes until the proxy hangs up, and what it sent before.
func lasts(c net.Conn) (time.Duration, string) {
	begun := time.Now()
	text, _ := io.ReadAll(c)
	return time.Since(begun), string(text)
}

func TestLimits_SilentClientsAreDisconnected(t *testing.T) {
	tests := map[string]struct{ sent, want string }{
		"nothing":         {"", ""},
		"half a request":  {"GET http://example.com/ HT", "HTTP/1.1 400 Bad Request\r\n"},
		"half a greeting": {"\x05\x03\x00", ""},
		"half of SOCKS5":  {"\x05\x01\x00", "\x05\x00"},
		"half of SOCKS4":  {"\x04\x01\x00\x50\x00\x00\x00\x01me", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *pipeWorld) {
				c := w.dial()
				io.WriteString(c, tt.sent)
				took, got := lasts(c)
				if took != handshakeTimeout || !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
					t.Errorf("got %q after %v, want %q after %v", got, took, tt.want, handshakeTimeout)
				}
			})
		})
	}
}

func TestLimits_NextRequestHasATimeoutOfItsOwn(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *pipeWorld) {
		c := w.dial()
		r := bufio.NewReader(c)
		for range 2 {
			io.WriteString(c, "GET http://localhost/ HTTP/1.1\r\nHost: x\r\n\r\n")
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			time.Sleep(40 * time.Second)
		}
		io.WriteString(c, "GET http://loc")
		if took, _ := lasts(c); took != handshakeTimeout {
			t.Errorf("it took %v, want %v", took, handshakeTimeout)
		}
	})
}

func TestLimits_SlowHandshakeIsDisconnected(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *pipeWorld) {
		c := w.dial()
		begun := time.Now()
		for _, piece := range "\x05\x7f" + strings.Repeat("\x00", 0x7f) {
			if _, err := io.WriteString(c, string(piece)); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(begun); took > handshakeTimeout+2*time.Second {
			t.Errorf("it took %v, want %v", took, handshakeTimeout)
		}
	})
}

func TestLimits_IdleTunnelEnds(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *pipeWorld) {
		c := w.dial()
		io.WriteString(c, "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
		io.ReadFull(c, make([]byte, len(established)))
		host := <-w.hosts
		for range 5 { // it is used now and then, for longer than the limit
			time.Sleep(50 * time.Second)
			io.WriteString(host, "x")
			io.ReadFull(c, make([]byte, 1))
		}
		if took, _ := lasts(c); took != time.Minute {
			t.Errorf("it lasted %v after the last byte, want a minute", took)
		}
		if got, want := (<-w.reported).Reason, "nothing went through it for 1m0s"; got != want {
			t.Errorf("reported %q, want %q", got, want)
		}
	})
}

// This is about what the system keeps in its own buffers, so it takes real time, if little.
func TestLimits_ClientThatReadsNothingIsDisconnected(t *testing.T) {
	for name, request := range map[string]string{
		"tunnel":  "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"forward": "GET http://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			backend := web(t, func(w http.ResponseWriter, _ *http.Request) {
				defer close(ended)
				for {
					if _, err := w.Write(make([]byte, 64<<10)); err != nil {
						return
					}
				}
			})
			w := newWorld(t, Policy{Domains: []string{"*"}}, backend, func(o *Options) { o.IdleTimeout = 50 * time.Millisecond })
			w.dial().send(request)
			<-ended
			if got := w.next(); got.Verdict != Allowed || got.BytesDown == 0 {
				t.Errorf("reported %+v", got)
			}
		})
	}
}

func TestLimits_SlowRequestBodyIsDisconnected(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *pipeWorld) {
		c := w.dial()
		io.WriteString(c, "POST http://example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
		go io.Copy(io.Discard, <-w.hosts)
		if took, _ := lasts(c); took > time.Minute {
			t.Errorf("it lasted %v, want a minute", took)
		}
		if got := <-w.reported; got.Verdict != Allowed || got.Reason == "" {
			t.Errorf("reported %+v", got)
		}
	})
}

func TestLimits_SilentHostTimesOut(t *testing.T) {
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	tests := map[string]func(*Options){
		"lookup": func(o *Options) {
			o.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) { return nil, hangs(ctx) }
		},
		"dialling": func(o *Options) {
			o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, hangs(ctx) }
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, change, func(t *testing.T, w *pipeWorld) {
				c := w.dial()
				io.WriteString(c, "GET http://example.com/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				took, got := lasts(c)
				if !strings.HasPrefix(got, "HTTP/1.1 504 ") || took < 20*time.Second {
					t.Errorf("got %q after %v, want 504 after 20s", got, took)
				}
				if reported := <-w.reported; reported.Verdict != Failed || reported.Duration != 20*time.Second {
					t.Errorf("reported %+v", reported)
				}
			})
		})
	}
}

func TestLimits_DeadAddressLeavesTimeForTheNext(t *testing.T) {
	inBubble(t, func(o *Options) {
		o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("2606:4700::1"), netip.MustParseAddr("93.184.216.34")}, nil
		}
		dial := o.Dial
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasPrefix(addr, "[") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx, network, addr)
		}
	}, func(t *testing.T, w *pipeWorld) {
		c := w.dial()
		begun := time.Now()
		io.WriteString(c, "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := io.ReadFull(c, make([]byte, len(established))); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("it took %v, want half of the time for dialling", took)
		}
	})
}

func TestLimits_ExcessConnectionsGetARefusal(t *testing.T) {
	const limit = 3
	w := newWorld(t, Policy{Domains: []string{"*"}}, echo(t), func(o *Options) { o.MaxConnections = limit })
	var held []*wire
	for range limit {
		held = append(held, w.dial().send("CONNECT example.com:443 HTTP/1.1\r\n\r\nx").expect(established+"x"))
	}
	above := w.dial()
	status, body := above.send("CONNECT example.com:443 HTTP/1.1\r\n\r\n").answer("GET")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "example.com:443 is denied: there are already 3 connections") {
		t.Errorf("got %d %q, want 503", status, body)
	}
	if _, err := above.ReadByte(); err != io.EOF {
		t.Errorf("got %v, want the end of the connection", err)
	}
	for range maxRefusing - 5 {
		w.dial()
	}
	w.dial().send("\x05\x01\x00" + socks5Request(1, "example.com", 443)).expect("\x05\x00" + string(socks5Reply(1)))
	for range 2 {
		if got := w.next(); got.Verdict != Denied || got.Host != "example.com" || got.Port != 443 {
			t.Errorf("reported %+v", got)
		}
	}
	held[0].Close()
	w.next()
	// Those that were refused and are still there take no place.
	w.dial().send("CONNECT example.com:443 HTTP/1.1\r\n\r\nx").expect(established + "x")
}

func TestLimits_TooManyRefusalsAreDropped(t *testing.T) {
	inBubble(t, func(o *Options) { o.MaxConnections = 1 }, func(t *testing.T, w *pipeWorld) {
		for range 1 + maxRefusing {
			defer w.dial().Close()
		}
		synctest.Wait()
		if took, got := lasts(w.dial()); took != 0 || got != "" {
			t.Errorf("got %q after %v, want nothing at once", got, took)
		}
		if got := <-w.reported; got.Verdict != Denied || got.Host != "" {
			t.Errorf("reported %+v", got)
		}
		// Those above the limit cannot stay.
		time.Sleep(refusingTimeout)
		synctest.Wait()
		w.proxy.mu.Lock()
		defer w.proxy.mu.Unlock()
		if w.proxy.clients != 1 || w.proxy.refusing != 0 {
			t.Errorf("%d clients are left and %d above the limit, want 1 and none", w.proxy.clients, w.proxy.refusing)
		}
	})
}

// A flakyListener fails for a while, as a system without free descriptors does.
type flakyListener struct {
	*pipeListener
	failures int
}

type temporaryError struct{ error }

func (temporaryError) Temporary() bool { return true }

func (l *flakyListener) Accept() (net.Conn, error) {
	if l.failures--; l.failures >= 0 {
		return nil, temporaryError{errors.New("too many open files")}
	}
	return l.pipeListener.Accept()
}

func TestServe_TemporaryAcceptErrorIsRetried(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *pipeWorld) {
		flaky := &flakyListener{&pipeListener{make(chan net.Conn), make(chan struct{})}, 20}
		go w.proxy.Serve(flaky)
		w.listener = flaky.pipeListener
		io.WriteString(w.dial(), "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
		<-w.hosts
	})
}
