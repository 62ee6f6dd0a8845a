// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHTTP_DenialNamesTheFieldToChange(t *testing.T) {
	policy := Policy{Domains: []string{"example.com", "private.example"}, Ports: []int{443}}
	w := newWorld(t, policy, nil, nil)
	tests := []struct {
		target, want string
	}{
		{"other.example:443", "other.example:443 is denied: the host is not permitted\n  next: use a permitted host, or add \"other.example\" to NetworkPolicy.AllowedDomains\n"},
		{"93.184.216.34:443", "93.184.216.34:443 is denied: the address is not permitted\n  next: use a permitted host, or add \"93.184.216.34\" to NetworkPolicy.AllowedDomains\n"},
		{"10.0.0.5:443", "10.0.0.5:443 is denied: it is a private address\n  next: use a permitted host, or add \"10.0.0.5\" to NetworkPolicy.AllowedDomains\n"},
		{"[ff02::1]:443", "[ff02::1]:443 is denied: it is a multicast address\n  next: use a public address; no entry of NetworkPolicy.AllowedDomains permits this one\n"},
		{"example.com:22", "example.com:22 is denied: port 22 is not permitted\n  next: use a permitted port, or add 22 to NetworkPolicy.AllowedPorts\n"},
		{"localhost:443", "localhost:443 is denied: the machine outside of the cell is not permitted\n  next: use a permitted host; only the user can set NetworkPolicy.AllowLocalhost\n"},
		{"private.example:443", "private.example:443 is denied: the name leads to a private address\n  next: names may lead to public addresses only; a private address has to be listed in NetworkPolicy.AllowedDomains and used itself\n"},
	}
	for _, tt := range tests {
		t.Run(tt.target, func(t *testing.T) {
			c := w.dial()
			status, body := c.send("CONNECT " + tt.target + " HTTP/1.1\r\nHost: x\r\n\r\n").answer("CONNECT")
			if status != http.StatusForbidden || body != tt.want {
				t.Errorf("CONNECT: got %d %q\nwant 403 %q", status, body, tt.want)
			}
			status, body = c.send("GET http://" + tt.target + "/ HTTP/1.1\r\nHost: x\r\n\r\n").answer("GET")
			if status != http.StatusForbidden || body != tt.want {
				t.Errorf("GET: got %d %q\nwant 403 %q", status, body, tt.want)
			}
		})
	}
}

func TestHTTP_MalformedRequestsReachNoHost(t *testing.T) {
	w := newWorld(t, Policy{Domains: []string{"*"}, Localhost: true}, ok(t), nil)
	tests := map[string]string{
		"no host":                  "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"an asterisk":              "OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"another host behind it":   "GET /http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"https":                    "GET https://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"ftp":                      "GET ftp://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"a user":                   "GET http://user:pw@example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"an empty user":            "GET http://@example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"percent in the host":      "GET http://%65xample.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"percent UTF-8 host":       "GET http://b%C3%BCcher.org/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"a fragment":               "GET http://example.com#@other.example/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"a backslash":              "GET http://example.com\\@other.example/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"a port without a number":  "GET http://example.com:/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"no port in CONNECT":       "CONNECT example.com HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"a path in CONNECT":        "CONNECT /example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"a URL in CONNECT":         "CONNECT http://example.com:443/ HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"a body in CONNECT":        "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"chunks in CONNECT":        "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two Host headers":         "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nHost: other.example\r\n\r\n",
		"no Host header":           "GET http://example.com/ HTTP/1.1\r\n\r\n",
		"two lengths":              "POST http://example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
		"an unknown encoding":      "POST http://example.com/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
		"two encodings":            "POST http://example.com/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
		"a space before the colon": "GET http://example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\nabc",
		"a space in the target":    "GET http://example.com /x HTTP/1.1\r\nHost: x\r\n\r\n",
		"HTTP/2":                   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"TLS":                      "\x16\x03\x01\x00\x05hello\r\n\r\n",
		"a long header":            "GET http://example.com/ HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			c := w.dial()
			go io.WriteString(c.Conn, text) // the answer may come before all was sent
			res, err := http.ReadResponse(c.Reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode < 400 || res.StatusCode > 431 && res.StatusCode != 501 && res.StatusCode != 505 {
				t.Errorf("got %s, want a refusal", res.Status)
			}
			if _, dialled := w.lists(); len(dialled) > 0 {
				t.Errorf("dialled %v", dialled)
			}
		})
	}
}

func TestHTTP_RequestsAreRewritten(t *testing.T) {
	type seen struct {
		Line, Host string
		Header     http.Header
		Body       string
	}
	var got []seen
	backend := web(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, seen{r.Method + " " + r.RequestURI, r.Host, r.Header.Clone(), string(body)})
		io.WriteString(w, "answer")
	})
	w := newWorld(t, Policy{Domains: []string{"example.com"}}, backend, nil)
	c := w.dial().send("POST HTTP://EXAMPLE.com.:8080/a%2Fb;c?q=1;2&x=%zz HTTP/1.1\r\nHost: other.example\r\nConnection: X-Mine, keep-alive\r\nX-Mine: 1\r\n" +
		"X-Yours: 1\r\nKeep-Alive: 1\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic Zm9v\r\nAuthorization: Basic Zm9v\r\n" +
		"TE: gzip\r\nUpgrade: websocket\r\nUser-Agent: test\r\n" +
		"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
	if status, body := c.answer("POST"); status != 200 || body != "answer" {
		t.Errorf("got %d %q, want the answer", status, body)
	}
	want := []seen{{
		"POST /a%2Fb;c?q=1;2&x=%zz", "example.com:8080",
		http.Header{"X-Yours": {"1"}, "Authorization": {"Basic Zm9v"}, "User-Agent": {"test"}, "Connection": {"close"}},
		"hello",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the host got (-want +got):\n%s", diff)
	}
}

func TestHTTP_HopByHopHeadersAreRemovedFromResponses(t *testing.T) {
	w := newWorld(t, Policy{Domains: []string{"example.com"}}, answerServer(t, "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"+
		"X-End: 1\r\nProxy-Authenticate: Basic\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n"), nil)
	res, err := http.ReadResponse(w.dial().send("GET http://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n").Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Header.Del("Date")
	if diff := cmp.Diff(http.Header{"X-End": {"1"}, "Content-Length": {"0"}}, res.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestHTTP_EachRequestOfAConnectionIsChecked(t *testing.T) {
	backend := web(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })
	w := newWorld(t, Policy{Domains: []string{"example.com", "*.example.com"}}, backend, nil)
	c := w.dial()
	for _, tt := range []struct {
		host   string
		status int
	}{{"example.com", 200}, {"other.example", 403}, {"www.example.com", 200}, {"localhost", 403}, {"example.com", 200}} {
		status, body := c.send("GET http://" + tt.host + "/ HTTP/1.1\r\nHost: example.com\r\n\r\n").answer("GET")
		if status != tt.status || status == 200 && body != tt.host {
			t.Errorf("%s: got %d %q, want %d", tt.host, status, body, tt.status)
		}
	}
	status, _ := c.send("CONNECT other.example:80 HTTP/1.1\r\nHost: example.com\r\n\r\n").answer("CONNECT")
	if status != 403 {
		t.Errorf("CONNECT behind it: got %d, want 403", status)
	}
	if _, dialled := w.lists(); len(dialled) != 3 {
		t.Errorf("dialled %v, want 3", dialled)
	}
}

// A request hidden behind the body of another must not reach the host as a request of its own.
func TestHTTP_PipelinedRequestIsCheckedToo(t *testing.T) {
	var lines []string
	backend := web(t, func(w http.ResponseWriter, r *http.Request) {
		lines = append(lines, r.RequestURI)
		io.Copy(io.Discard, r.Body)
	})
	w := newWorld(t, Policy{Domains: []string{"example.com"}}, backend, nil)
	w.dial().send("POST http://example.com/old HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n").answer("POST")
	hidden := "GET /hidden HTTP/1.1\r\nHost: example.com\r\n\r\n"
	c := w.dial().send(fmt.Sprintf("POST http://example.com/open HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", len(hidden), hidden))
	if status, _ := c.answer("POST"); status != 200 {
		t.Errorf("the first: got %d, want 200", status)
	}
	if status, _ := c.answer("GET"); status != 400 {
		t.Errorf("the hidden one: got %d, want 400", status)
	}
	if diff := cmp.Diff([]string{"/old", "/open"}, lines); diff != "" {
		t.Errorf("what the host got (-want +got):\n%s", diff)
	}
}

func TestHTTP_ResponsesAreStreamed(t *testing.T) {
	more := make(chan struct{})
	backend := web(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "11")
		io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-more
		io.WriteString(w, "second")
	})
	w := newWorld(t, Policy{Domains: []string{"example.com"}}, backend, nil)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr}), DisableKeepAlives: true}}
	res, err := client.Get("http://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "first" {
		t.Fatalf("got %q, %v", first, err)
	}
	close(more)
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "second" {
		t.Fatalf("got %q, %v", rest, err)
	}
}

func TestHTTP_HostWithoutHTTPIsABadGateway(t *testing.T) {
	tests := map[string]string{
		"nonsense":             "SSH-2.0-OpenSSH\r\n",
		"nothing":              "",
		"another protocol":     "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"a header without end": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxResponseHeader+1) + "\r\n\r\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Policy{Domains: []string{"example.com"}}, answerServer(t, text), nil)
			status, body := w.dial().send("GET http://example.com/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n").answer("GET")
			if status != 502 || !strings.Contains(body, "example.com:80 failed: the host gave no answer") {
				t.Errorf("got %d %q, want 502", status, body)
			}
			if got := w.next(); got.Verdict != Failed || got.Address != "93.184.216.34:80" {
				t.Errorf("got %+v, want it to have failed", got)
			}
			w.quiet()
		})
	}
}

// answerServer is a server that reads a request, answers with text, whatever it was, and hangs up.
func answerServer(t *testing.T, text string) net.Addr {
	l := listen(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, text)
			conn.Close()
		}
	}()
	return l.Addr()
}
