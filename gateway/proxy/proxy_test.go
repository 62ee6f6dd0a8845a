// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
)

// ways are how a client can ask for a host and a port. Each gives whether it was let through.
var ways = map[Protocol]func(w *world, host string, port int) bool{
	ProtocolConnect: func(w *world, host string, port int) bool {
		target := net.JoinHostPort(host, fmt.Sprint(port))
		status, _ := w.dial().send("CONNECT " + target + " HTTP/1.1\r\nHost: example.com\r\n\r\n").answer("CONNECT")
		return status == http.StatusOK
	},
	ProtocolHTTP: func(w *world, host string, port int) bool {
		target := net.JoinHostPort(host, fmt.Sprint(port))
		status, _ := w.dial().send("GET http://" + target + "/ HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n").answer("GET")
		return status == http.StatusOK
	},
	ProtocolSOCKS5: func(w *world, host string, port int) bool {
		c := w.dial().send("\x05\x01\x00").expect("\x05\x00").send(socks5Request(socksConnect, host, port))
		answer := make([]byte, 10)
		_, err := io.ReadFull(c, answer)
		return err == nil && answer[1] == 0
	},
	ProtocolSOCKS4: func(w *world, host string, port int) bool {
		c := w.dial().send("\x04\x01" + string(binary.BigEndian.AppendUint16(nil, uint16(port))) + "\x00\x00\x00\x01user\x00" + host + "\x00")
		answer := make([]byte, 8)
		_, err := io.ReadFull(c, answer)
		return err == nil && answer[1] == 0x5a
	},
}

func socks5Request(command byte, host string, port int) string {
	return "\x05" + string([]byte{command}) + "\x00\x03" + string([]byte{byte(len(host))}) + host + string(binary.BigEndian.AppendUint16(nil, uint16(port)))
}

// ok answers every request.
func ok(t testing.TB) net.Addr {
	return web(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
}

func TestProxy_EveryProtocolFollowsThePolicy(t *testing.T) {
	listed := Policy{Domains: []string{"example.com", "*.example.com", "two.example", "10.0.0.7"}}
	all := Policy{Domains: []string{"*"}}
	local := Policy{Localhost: true}
	tests := []struct {
		name    string
		policy  Policy
		host    string
		port    int
		dialled string // empty: denied
	}{
		{"a listed host", listed, "example.com", 443, "93.184.216.34:443"},
		{"in capitals, with a final dot", listed, "EXAMPLE.com.", 80, "93.184.216.34:80"},
		{"a subdomain", listed, "www.example.com", 443, "93.184.216.35:443"},
		{"a host that is not listed", listed, "other.example", 443, ""},
		{"a listed private address", listed, "10.0.0.7", 80, "10.0.0.7:80"},
		{"a private address beside it", listed, "10.0.0.8", 80, ""},
		{"a public address that is not listed", listed, "93.184.216.34", 80, ""},
		{"nothing is listed", Policy{}, "example.com", 443, ""},
		{"everything public", all, "other.example", 8443, "93.184.216.36:8443"},
		{"a public address", all, "93.184.216.36", 80, "93.184.216.36:80"},
		{"a public IPv6 address", all, "2606:2800:220:1::9", 80, "[2606:2800:220:1::9]:80"},
		{"an international name", all, "xn--bcher-kva.org", 80, "93.184.216.38:80"},
		{"a private address under *", all, "10.0.0.5", 80, ""},
		{"metadata of a cloud", all, "169.254.169.254", 80, ""},
		{"an address of the machine itself", all, "93.184.216.99", 80, ""},
		{"a name of the machine itself", all, "own.example", 80, ""},
		{"a name of a private address", all, "private.example", 80, ""},
		{"a name of a private and a public address", all, "mixed.example", 80, ""},
		{"a name of metadata", all, "meta.example", 80, ""},
		{"a name of loopback", all, "loop.example", 80, ""},
		{"a name of IPv6 loopback", all, "loop6.example", 80, ""},
		{"a name of mapped loopback", all, "mapped.example", 80, ""},
		{"a name of a mapped public address", all, "mapped.public", 80, "93.184.216.40:80"},
		{"a name of NAT64 loopback", all, "nat64.example", 80, ""},
		{"a name of 6to4 loopback", all, "sixtofour.example", 80, ""},
		{"a name of an address with a zone", all, "zone.example", 80, ""},
		{"a name of loopback with Localhost", Policy{Domains: []string{"*"}, Localhost: true}, "loop.example", 80, ""},
		{"a name of a listed private address", Policy{Domains: []string{"*", "10.0.0.5"}}, "private.example", 80, ""},
		{"localhost", local, "localhost", 3000, "127.0.0.1:3000"},
		{"localhost with a dot", local, "LocalHost.", 3000, "127.0.0.1:3000"},
		{"loopback", local, "127.0.0.1", 3000, "127.0.0.1:3000"},
		{"IPv6 loopback", local, "::1", 3000, "[::1]:3000"},
		{"another loopback address", local, "127.0.0.2", 3000, ""},
		{"a subdomain of localhost", local, "a.localhost", 3000, ""},
		{"unspecified", local, "0.0.0.0", 3000, ""},
		{"localhost under *", all, "localhost", 80, ""},
		{"loopback under *", all, "127.0.0.1", 80, ""},
		{"mapped loopback", local, "::ffff:127.0.0.1", 3000, ""},
		{"short loopback", local, "127.1", 3000, ""},
		{"loopback as a number", local, "2130706433", 3000, ""},
		{"hexadecimal loopback", local, "0x7f.1", 3000, ""},
		{"octal loopback", local, "0177.0.0.1", 3000, ""},
		{"percent-encoded localhost", local, "%6cocalhost", 3000, ""},
		{"user and host", listed, "example.com@other.example", 80, ""},
		{"user in front of a listed host", listed, "other.example@example.com", 80, ""},
		{"a permitted port", Policy{Domains: []string{"*"}, Ports: []int{80, 443}}, "example.com", 443, "93.184.216.34:443"},
		{"another port", Policy{Domains: []string{"*"}, Ports: []int{80, 443}}, "example.com", 22, ""},
		{"no port at all", Policy{Domains: []string{"*"}, Ports: []int{}}, "example.com", 443, ""},
		{"a permitted port of localhost", Policy{Ports: []int{3000}, Localhost: true}, "localhost", 3000, "127.0.0.1:3000"},
		{"another port of localhost", Policy{Ports: []int{3000}, Localhost: true}, "localhost", 3001, ""},
		{"port 0", all, "example.com", 0, ""},
	}
	backend := ok(t)
	for _, tt := range tests {
		for protocol, ask := range ways {
			t.Run(tt.name+"/"+string(protocol), func(t *testing.T) {
				w := newWorld(t, tt.policy, backend, nil)
				if got, want := ask(w, tt.host, tt.port), tt.dialled != ""; got != want {
					t.Errorf("let through: got %v, want %v", got, want)
				}
				_, dialled := w.lists()
				if got := strings.Join(dialled, " "); got != tt.dialled {
					t.Errorf("dialled: got %q, want %q", got, tt.dialled)
				}
			})
		}
	}
}

func TestProxy_DeniedHostIsNotResolved(t *testing.T) {
	for protocol, ask := range ways {
		w := newWorld(t, Policy{Domains: []string{"example.com"}, Ports: []int{443}}, nil, nil)
		ask(w, "secret-data.other.example", 443)
		ask(w, "example.com", 80)
		if looked, _ := w.lists(); len(looked) > 0 {
			t.Errorf("%s: looked up %v", protocol, looked)
		}
	}
}

func TestProxy_NameIsResolvedOnce(t *testing.T) {
	// The second answer would be another: this is how names are made to lead inside.
	answers := []string{"93.184.216.34", "127.0.0.1", "127.0.0.1"}
	w := newWorld(t, Policy{Domains: []string{"example.com"}}, ok(t), func(o *Options) {
		o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			answer := answers[0]
			answers = answers[1:]
			return []netip.Addr{netip.MustParseAddr(answer)}, nil
		}
	})
	if !ways[ProtocolHTTP](w, "example.com", 80) {
		t.Error("the first request was denied")
	}
	if ways[ProtocolHTTP](w, "example.com", 80) {
		t.Error("the second request was let through")
	}
	_, dialled := w.lists()
	if diff := cmp.Diff([]string{"93.184.216.34:80"}, dialled); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
}

func TestProxy_NextAddressIsTried(t *testing.T) {
	var tried []string
	backend := echo(t)
	w := newWorld(t, Policy{Domains: []string{"*"}}, nil, func(o *Options) {
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if tried = append(tried, addr); len(tried) == 1 {
				return nil, errors.New("not this one")
			}
			return new(net.Dialer).DialContext(ctx, network, backend.String())
		}
	})
	if !ways[ProtocolConnect](w, "two.example", 80) {
		t.Error("not connected")
	}
	if diff := cmp.Diff([]string{"93.184.216.37:80", "[2606:2800:220:1::2]:80"}, tried); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
	if got, want := w.proxyClosed().next().Address, "[2606:2800:220:1::2]:80"; got != want {
		t.Errorf("address: got %s, want %s", got, want)
	}
}

// proxyClosed ends all connections, so that they are reported.
func (w *world) proxyClosed() *world {
	w.proxy.Close()
	return w
}

func TestProxy_EveryAttemptEmitsOneEvent(t *testing.T) {
	w := newWorld(t, Policy{Domains: []string{"example.com", "private.example", "gone.example"}}, ok(t), nil)
	ways[ProtocolHTTP](w, "example.com", 8080)
	got := []Connection{w.next()}
	if got[0].BytesUp == 0 || got[0].BytesDown == 0 {
		t.Errorf("bytes: got %d up, %d down, want some", got[0].BytesUp, got[0].BytesDown)
	}
	got[0].BytesUp, got[0].BytesDown = 0, 0
	ways[ProtocolConnect](w, "other.example", 443)
	ways[ProtocolSOCKS5](w, "127.0.0.1", 22)
	ways[ProtocolSOCKS4](w, "private.example", 22)
	ways[ProtocolConnect](w, "gone.example", 443)
	ways[ProtocolSOCKS5](w, "a\x1b[31m\n"+strings.Repeat("x", 240), 22)
	for range 5 {
		got = append(got, w.next())
	}
	for i := range got[5].Host {
		if got[5].Host[i] < ' ' {
			t.Errorf("host: got %q, want printable text", got[5].Host)
		}
	}
	if len(got[5].Host) > 255 || !strings.HasPrefix(got[5].Host, `a\x1b[31m\nxxx`) {
		t.Errorf("host: got %q", got[5].Host)
	}
	got[5].Host = ""
	want := []Connection{
		{Protocol: ProtocolHTTP, Host: "example.com", Port: 8080, Verdict: Allowed, Address: "93.184.216.34:8080"},
		{Protocol: ProtocolConnect, Host: "other.example", Port: 443, Verdict: Denied, Reason: "the host is not permitted"},
		{Protocol: ProtocolSOCKS5, Host: "127.0.0.1", Port: 22, Verdict: Denied, Reason: "the machine outside of the cell is not permitted"},
		{Protocol: ProtocolSOCKS4, Host: "private.example", Port: 22, Verdict: Denied, Reason: "the name leads to a private address", Address: "10.0.0.5"},
		{Protocol: ProtocolConnect, Host: "gone.example", Port: 443, Verdict: Failed, Reason: "there is no host of this name: lookup gone.example on 10.9.9.9:53: no such host"},
		{Protocol: ProtocolSOCKS5, Port: 22, Verdict: Denied, Reason: "the request is not understood: a part between dots is longer than 63 characters"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.quiet()
}

func TestProxy_TunnelEmitsItsEventAtTheEnd(t *testing.T) {
	w := newWorld(t, Policy{Domains: []string{"example.com"}}, echo(t), nil)
	c := w.dial().send("CONNECT example.com:443 HTTP/1.1\r\n\r\nearly").expect(established + "early").send("later").expect("later")
	w.mu.Lock()
	if len(w.reported) > 0 {
		t.Errorf("reported before its end: %+v", w.reported)
	}
	w.mu.Unlock()
	c.Conn.(*net.TCPConn).CloseWrite()
	if rest, err := io.ReadAll(c); len(rest) > 0 || err != nil {
		t.Errorf("got %q, %v after the end", rest, err)
	}
	want := Connection{
		Protocol: ProtocolConnect, Host: "example.com", Port: 443, Verdict: Allowed, Address: "93.184.216.34:443",
		BytesUp: 10, BytesDown: 10,
	}
	if diff := cmp.Diff(want, w.next()); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	w.quiet()
}

func TestProxy_ClientSeesNoAddressesOfTheNetwork(t *testing.T) {
	w := newWorld(t, Policy{Domains: []string{"*"}}, nil, nil)
	for _, host := range []string{"gone.example", "private.example"} {
		_, body := w.dial().send("GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\n\r\n").answer("GET")
		if strings.Contains(body, "10.") || !strings.Contains(body, host) {
			t.Errorf("%s: got %q, want no address", host, body)
		}
	}
}

func TestConnection_SurvivesJSON(t *testing.T) {
	want := Connection{
		Protocol: ProtocolConnect, Host: "example.com", Port: 443, Verdict: Allowed, Reason: "r", Address: "93.184.216.34:443",
		BytesUp: 1, BytesDown: 2, Duration: 1500 * time.Millisecond, Missed: 3,
	}
	line, err := event.New(want).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var read event.Event
	if err := json.Unmarshal(line, &read); err != nil {
		t.Fatal(err)
	}
	var got Connection
	if err := json.Unmarshal(read.Payload.(event.Extension).Data, &got); err != nil || read.Kind != gateway.KindConnection {
		t.Fatal(read.Kind, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const text = `{"protocol":"connect","host":"example.com","port":443,"verdict":"allowed","reason":"r","address":"93.184.216.34:443","bytesUp":1,"bytesDown":2,"missed":3,"durationMs":1500}`
	if data := string(read.Payload.(event.Extension).Data); data != text {
		t.Errorf("got  %s\nwant %s", data, text)
	}
}

func TestProxy_SlowEmitDelaysNoRequest(t *testing.T) {
	release := make(chan struct{})
	var reported []Connection
	w := newWorld(t, Policy{}, nil, func(o *Options) {
		o.Emit = func(p event.Payload) {
			<-release
			reported = append(reported, p.(Connection))
		}
	})
	c := w.dial()
	const attempts = maxQueued + 100
	for range attempts {
		c.send("GET http://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n")
		if status, _ := c.answer("GET"); status != http.StatusForbidden {
			t.Fatalf("got %d, want 403", status)
		}
	}
	close(release)
	w.dial().send("GET http://last.example/ HTTP/1.1\r\nHost: x\r\n\r\n").answer("GET")
	w.proxy.Close()
	missed := 0
	for _, c := range reported {
		missed += c.Missed
	}
	if last := reported[len(reported)-1]; last.Host == "" { // it represents those before it
		reported = reported[:len(reported)-1]
	}
	if len(reported)+missed != attempts+1 || len(reported) < maxQueued {
		t.Errorf("got %d events and %d missed of %d", len(reported), missed, attempts+1)
	}
}

func TestServe_SeveralListeners(t *testing.T) {
	w := newWorld(t, Policy{Domains: []string{"*"}}, ok(t), nil)
	second := listen(t)
	ended := make(chan error)
	go func() { ended <- w.proxy.Serve(second) }()
	first := w.addr
	for _, addr := range []string{first, second.Addr().String()} {
		w.addr = addr
		if !ways[ProtocolHTTP](w, "example.com", 80) {
			t.Errorf("%s is not served", addr)
		}
	}
	w.proxy.Close()
	if err := <-ended; err != nil {
		t.Errorf("Serve: got %v, want nil after Close", err)
	}
	third := listen(t)
	if err := w.proxy.Serve(third); err != nil {
		t.Errorf("Serve after Close: got %v", err)
	}
	if _, err := third.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is still open: %v", err)
	}
	if err := w.proxy.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestServe_ReturnsTheErrorOfItsListener(t *testing.T) {
	w := newWorld(t, Policy{}, nil, nil)
	l := listen(t)
	l.Close()
	if err := w.proxy.Serve(l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want net.ErrClosed", err)
	}
}

func TestProxy_CloseEndsEverything(t *testing.T) {
	backend := echo(t)
	silentHost, reached := listen(t), make(chan struct{}) // it accepts, and sends nothing
	go func() {
		defer close(reached)
		if c, err := silentHost.Accept(); err == nil {
			t.Cleanup(func() { c.Close() })
			_, _ = c.Read(make([]byte, 1))
		}
	}()
	dialling := make(chan struct{})
	w := newWorld(t, Policy{Domains: []string{"*"}}, backend, func(o *Options) {
		dial := o.Dial
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasSuffix(addr, ":9") {
				close(dialling)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if strings.HasSuffix(addr, ":80") {
				return new(net.Dialer).DialContext(ctx, network, silentHost.Addr().String())
			}
			return dial(ctx, network, addr)
		}
	})
	silent := w.dial()
	half := w.dial().send("GET http://exam")
	socks := w.dial().send("\x05\x01\x00").expect("\x05\x00")
	tunnel := w.dial().send("CONNECT example.com:443 HTTP/1.1\r\n\r\nx").expect(established + "x")
	body := w.dial().send("POST http://example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
	stuck := w.dial().send("CONNECT example.com:9 HTTP/1.1\r\n\r\n")
	<-dialling
	<-reached
	waitFor(t, func() bool { _, dialled := w.lists(); return slices.Contains(dialled, "93.184.216.34:443") })
	w.proxy.Close()
	for name, c := range map[string]*wire{"silent": silent, "half": half, "socks": socks, "tunnel": tunnel, "body": body, "stuck": stuck} {
		if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: still open", name)
		}
	}
	if len(w.proxy.open) > 0 || w.proxy.clients != 0 || w.proxy.refusing != 0 {
		t.Errorf("left: %v, %d clients", w.proxy.open, w.proxy.clients)
	}
	var got []string
	for _, c := range w.reported {
		got = append(got, fmt.Sprintf("%s %d %s", c.Verdict, c.Port, strings.SplitN(c.Reason, ":", 2)[0]))
	}
	slices.Sort(got)
	want := []string{"allowed 443 the proxy was closed", "allowed 80 the proxy was closed", "failed 9 the host could not be reached"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

// waitFor is for what another process of the system does, such as accepting a connection.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for range 1000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it did not happen")
}
