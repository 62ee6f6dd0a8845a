// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/gateway"
)

// paths are the ways to an upstream: direct, and through a gateway.
func paths(b *testing.B, handler http.HandlerFunc) map[string]*http.Request {
	b.Helper()
	s := httptest.NewServer(handler)
	b.Cleanup(s.Close)
	run, url := serve(b, gateway.New(nil), gateway.RunOptions{Upstream: endpoint(b, s.URL)})
	requests := map[string]*http.Request{}
	for name, base := range map[string]string{"direct": s.URL, "gateway": url} {
		req, err := http.NewRequest(http.MethodPost, base+"/v1/messages", nil)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("X-Api-Key", run.Token())
		requests[name] = req
	}
	return requests
}

// largeQuestion is about what the CLI sends at the beginning of a run.
var largeQuestion = []byte(`{"model":"claude-opus-4-5","stream":true,"system":"` + strings.Repeat("all work and no play ", 8000) + `"}`)

// BenchmarkFirstByte is the time until the agent has the first byte of an answer.
func BenchmarkFirstByte(b *testing.B) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", streamType)
		io.WriteString(w, messageStart(10))
		w.(http.Flusher).Flush()
		io.WriteString(w, messageEnd(10)+messageStop)
	}
	for name, req := range paths(b, handler) {
		b.Run(name, func(b *testing.B) {
			c := client(b)
			var first time.Duration
			for b.Loop() {
				req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(largeQuestion)), int64(len(largeQuestion))
				began := time.Now()
				resp, err := c.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
					b.Fatal(err)
				}
				first += time.Since(began)
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			b.ReportMetric(float64(first.Microseconds())/float64(b.N), "µs/first-byte")
		})
	}
}

// BenchmarkThroughput is a stream of 16 MB.
func BenchmarkThroughput(b *testing.B) {
	body := []byte(messageStart(10) + strings.Repeat(delta, 16<<20/len(delta)) + messageEnd(10) + messageStop)
	handler := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", streamType)
		w.Write(body)
	}
	for name, req := range paths(b, handler) {
		b.Run(name, func(b *testing.B) {
			c := client(b)
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				req.Body, req.ContentLength = io.NopCloser(strings.NewReader(question)), int64(len(question))
				resp, err := c.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != int64(len(body)) {
					b.Fatalf("%d bytes, %v", n, err)
				}
				resp.Body.Close()
			}
		})
	}
}
