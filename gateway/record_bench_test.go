// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/gateway"
)

// longRequest is a request of a conversation of many messages, about as large as the CLI sends them.
func longRequest(messages int) string {
	var b strings.Builder
	b.WriteString(`{"model":"m","messages":[`)
	for i := range messages {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%q}]}`, i, strings.Repeat("some text of a tool in /home/ann/work/a.go ", 100))
	}
	b.WriteString(`]}`)
	return b.String()
}

func BenchmarkRecord(b *testing.B) {
	r, err := gateway.Record(says("text/event-stream", deltas("text", strings.Repeat("some text ", 1000))), filepath.Join(b.TempDir(), "r"), gateway.RecordOptions{Secrets: []string{"a-secret"}})
	if err != nil {
		b.Fatal(err)
	}
	body := longRequest(100)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		exchangeWith(b, r, messageRequest(b, body))
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkReplay(b *testing.B) {
	r, path := recordTo(b, says("text/event-stream", deltas("text", strings.Repeat("some text ", 1000))), gateway.RecordOptions{Folders: gateway.Folders{Dir: "/home/ann/work"}})
	body := longRequest(100)
	exchangeWith(b, r, httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body)))
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	p := replayFrom(b, path, gateway.ReplayOptions{Folders: gateway.Folders{Dir: "/home/ann/work"}})
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		resp, err := p.RoundTrip(httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body)))
		if err != nil || resp.StatusCode != 200 {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
	}
}
