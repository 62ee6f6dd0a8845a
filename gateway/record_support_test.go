// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/gateway"
)

// An endpoint is an upstream at an address.
type endpoint struct {
	base *url.URL
	wire gateway.Wire
	*http.Transport
}

// newEndpoint makes an upstream of the server at base.
func newEndpoint(t testing.TB, base string, wire gateway.Wire) *endpoint {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{u, wire, &http.Transport{DisableCompression: true}}
	t.Cleanup(e.CloseIdleConnections)
	return e
}

func (e *endpoint) Name() string       { return "endpoint" }
func (e *endpoint) Wire() gateway.Wire { return e.wire }

func (e *endpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = e.base.Scheme, e.base.Host, e.base.Host
	return e.Transport.RoundTrip(out)
}

// serve lets a CLI reach an upstream, and returns the address.
func serve(t testing.TB, up gateway.Upstream) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.RequestURI = ""
		out.Header.Del("X-Api-Key")
		resp, err := up.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		if _, err := io.Copy(flusher{w}, resp.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A flusher sends each part at once.
type flusher struct{ w http.ResponseWriter }

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	f.w.(http.Flusher).Flush()
	return n, err
}

// record makes a recorder to a file of the test.
func record(t testing.TB, up gateway.Upstream, opts gateway.RecordOptions) (*gateway.Recorder, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.jsonl")
	r, err := gateway.Record(up, path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r, path
}

func replay(t testing.TB, path string, opts gateway.ReplayOptions) *gateway.Player {
	t.Helper()
	p, err := gateway.Replay(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
