// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// examined is the doctor's check of the endpoint.
func examined(t *testing.T, d *machine, state State, detail string) *Check {
	t.Helper()
	got := d.examineModel(t.Context())
	if got.State != state || !strings.Contains(got.Detail, detail) {
		t.Errorf("got %s %q, want %s with %q", got.State, got.Detail, state, detail)
	}
	if want := state != stateOK && state != stateSkipped; want != (len(got.Fix) > 0) {
		t.Errorf("%s has the fixes %q", state, got.Fix)
	}
	return got
}

func TestExamine_EveryResponseMeansReachable(t *testing.T) {
	for status, want := range map[int]State{200: stateOK, 302: stateOK, 401: stateOK, 404: stateOK, 407: stateBroken, 503: stateWarning} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}))
		d := healthy(t)
		d.setenv("ANTHROPIC_BASE_URL", server.URL+"/v1/")
		if got := examined(t, d, want, ""); got.Endpoint != server.URL {
			t.Errorf("the endpoint is %q, want %q", got.Endpoint, server.URL)
		}
		server.Close()
	}
}

func TestExamine_OfflineAndBedrockSendNoRequest(t *testing.T) {
	d := healthy(t)
	d.dial.proxy = func(*http.Request) (*url.URL, error) { t.Error("it was tried"); return nil, nil }
	d.options.Offline = true
	examined(t, d, stateSkipped, "--offline")
	d.options.Offline = false
	d.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
	d.setenv("AWS_REGION", "eu-central-1")
	examined(t, d, stateSkipped, "Amazon Bedrock")
}

func TestExamine_FailingEndpoints(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	rude := rudeListener(t)
	cases := []struct{ name, address, want string }{
		{"closed", closed.URL, "cannot connect to " + strings.TrimPrefix(closed.URL, "http://") + ": "},
		{"no TLS", strings.Replace(plain.URL, "http:", "https:", 1), "it does not speak TLS"},
		{"neither TLS nor HTTP", "https" + strings.TrimPrefix(babblingListener(t), "http"), "what it speaks is not TLS"},
		{"no host", "http://", "ANTHROPIC_BASE_URL is not an address"},
		{"no scheme", "127.0.0.1:80", "ANTHROPIC_BASE_URL is not an address"},
		{"no valid host", "http://a%zzb", "ANTHROPIC_BASE_URL is not an address"},
		{"broken", "http://[::1", "ANTHROPIC_BASE_URL is not an address"},
		{"silent", silentListener(t), "no answer from 127.0.0.1"},
		{"rude", rude, "cannot connect to " + strings.TrimPrefix(rude, "http://") + ": it hung up without an answer"},
		{"unknown name", "http://model.invalid", "the name model.invalid does not resolve"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := healthy(t)
			d.setenv("ANTHROPIC_BASE_URL", c.address)
			d.dial.resolver = emptyNameService(t)
			if c.name == "silent" {
				d.dial.wait = 50 * time.Millisecond
			}
			got := examined(t, d, stateBroken, c.want)
			proxy := slices.ContainsFunc(got.Fix, func(fix string) bool { return strings.Contains(fix, "HTTP_PROXY") })
			if proxy != (c.name == "unknown name") {
				t.Errorf("the fixes are %q; a proxy helps only with what is not on this machine", got.Fix)
			}
		})
	}
}

// silentListener accepts and never answers.
func silentListener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String() // the kernel accepts for it
}

// babblingListener sends a text of its own to every client.
func babblingListener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "220 mail for everybody\r\n")
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// rudeListener hangs up on everybody.
func rudeListener(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	return server.URL
}

// emptyNameService is a name service on loopback that knows no name.
func emptyNameService(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil || n < 12 {
				return
			}
			query[2], query[3] = 0x81, 0x83 // an answer: there is no such name
			query[11] = 0                   // without additional records
			end := 12
			for query[end] != 0 {
				end += int(query[end]) + 1
			}
			_, _ = conn.WriteTo(query[:end+5], from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A server with a certificate of its own is refused, and reached once the CLI's variable names it.
func TestExamine_Certificates(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	d := healthy(t)
	d.setenv("ANTHROPIC_BASE_URL", server.URL)
	got := examined(t, d, stateBroken, "TLS error at 127.0.0.1")
	if !strings.Contains(got.Detail, "unknown authority") || !strings.Contains(got.Fix[0], extraCertificates) {
		t.Errorf("got %+v, want the authority and the variable", got)
	}
	d.setenv(extraCertificates, file)
	examined(t, d, stateOK, "reachable: "+server.URL)
	d.setenv("ANTHROPIC_BASE_URL", strings.Replace(server.URL, "127.0.0.1", "localhost", 1))
	examined(t, d, stateBroken, "TLS error at localhost")
	d.setenv(extraCertificates, filepath.Join(filepath.Dir(file), "none.pem"))
	examined(t, d, stateBroken, "cannot be read")
	d.setenv(extraCertificates, "model_test.go")
	examined(t, d, stateBroken, "holds no certificate")
}

// The request goes through the proxy that the environment chooses, whose password is not shown.
func TestExamine_UsesTheProxyAndHidesItsPassword(t *testing.T) {
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.String() }))
	defer proxy.Close()
	address, err := url.Parse(strings.Replace(proxy.URL, "http://", "http://me:hush-hush@", 1))
	if err != nil {
		t.Fatal(err)
	}
	d := healthy(t)
	d.dial.proxy = http.ProxyURL(address)
	d.setenv("ANTHROPIC_BASE_URL", "http://model.invalid/v1")
	got := examined(t, d, stateOK, "reachable: http://model.invalid through the proxy 127.0.0.1")
	if url := <-asked; url != "http://model.invalid/" {
		t.Errorf("the proxy was asked for %q", url)
	}
	proxy.Close()
	broken := examined(t, d, stateBroken, "cannot connect to model.invalid through the proxy 127.0.0.1")
	if want := "start what serves " + address.Host + ", or correct HTTP_PROXY"; len(broken.Fix) == 0 || broken.Fix[0] != want {
		t.Errorf("fixes %q, want first %q", broken.Fix, want)
	}
	if strings.Contains(got.Detail+broken.Detail, "hush-hush") {
		t.Errorf("the password is in %q or %q", got.Detail, broken.Detail)
	}
	d.dial.proxy = func(*http.Request) (*url.URL, error) {
		return nil, &url.Error{Op: "parse", URL: "hush-hush", Err: io.EOF}
	}
	if got := examined(t, d, stateBroken, "the proxy variables hold no valid address"); strings.Contains(got.Detail, "hush-hush") {
		t.Errorf("the address is in %q", got.Detail)
	}
}

func TestExamine_ProxyThatRefuses(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer proxy.Close()
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := healthy(t)
	d.dial.proxy = http.ProxyURL(address)
	d.setenv("ANTHROPIC_BASE_URL", "https://model.invalid")
	examined(t, d, stateBroken, "cannot connect to model.invalid through the proxy "+address.Host+": Forbidden")
}

func TestEndpointOf_DefaultIsTheVendor(t *testing.T) {
	endpoint, err := endpointOf("")
	if err != nil || endpoint.String() != defaultEndpoint {
		t.Errorf("got %v, %v, want %s", endpoint, err, defaultEndpoint)
	}
}

// The fix of a proxy is the variable that names it.
func TestExamine_ProxyThatRequiresAuthentication(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	defer proxy.Close()
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := healthy(t)
	d.setenv("ANTHROPIC_BASE_URL", "http://model.invalid")
	d.dial.proxy = http.ProxyURL(address)
	got := examined(t, d, stateBroken, "authentication required through the proxy "+address.Host)
	if len(got.Fix) != 1 || !strings.HasPrefix(got.Fix[0], "export HTTP_PROXY=") {
		t.Errorf("fixes %q, want the variable of this proxy", got.Fix)
	}
}
