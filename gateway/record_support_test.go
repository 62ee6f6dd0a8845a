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

// A modelEndpoint is an upstream at an address.
type modelEndpoint struct {
	base *url.URL
	wire *gateway.Wire
	*http.Transport
}

// newModelEndpoint makes an upstream of the server at base.
func newModelEndpoint(t testing.TB, base string, wire *gateway.Wire) *modelEndpoint {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	e := &modelEndpoint{u, wire, &http.Transport{DisableCompression: true}}
	t.Cleanup(e.CloseIdleConnections)
	return e
}

func (e *modelEndpoint) Name() string        { return "endpoint" }
func (e *modelEndpoint) Wire() *gateway.Wire { return e.wire }

func (e *modelEndpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = e.base.Scheme, e.base.Host, e.base.Host
	return e.Transport.RoundTrip(out)
}

// serveUpstream lets a CLI reach an upstream, and returns the address.
func serveUpstream(t testing.TB, up gateway.Upstream) string {
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

// recordTo makes a recorder to a file of the test.
func recordTo(t testing.TB, up gateway.Upstream, opts gateway.RecordOptions) (*gateway.Recorder, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.jsonl")
	r, err := gateway.Record(up, path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r, path
}

func replayFrom(t testing.TB, path string, opts gateway.ReplayOptions) *gateway.Player {
	t.Helper()
	p, err := gateway.Replay(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
