// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A tinyModel answers the Messages API on loopback: it says "reply N" and, when a prompt asks to
// delegate, first calls the Agent tool. It keeps every request body.
type tinyModel struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func newTinyModel(t *testing.T) *tinyModel {
	m := &tinyModel{}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *tinyModel) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path != "/v1/messages" {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"input_tokens":1}`)
		return
	}
	m.mu.Lock()
	m.requests = append(m.requests, string(body))
	n := len(m.requests)
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind, rest string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest) }
	event("message_start", fmt.Sprintf(`,"message":{"id":"msg_%d","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":1}}`, n))
	stop := "end_turn"
	if strings.Contains(string(body), "please delegate") && !strings.Contains(string(body), "tool_result") && !strings.Contains(string(body), "child task") {
		stop = "tool_use"
		input, _ := json.Marshal(`{"description":"child","prompt":"child task","subagent_type":"general-purpose","run_in_background":false}`)
		event("content_block_start", fmt.Sprintf(`,"index":0,"content_block":{"type":"tool_use","id":"toolu_%d","name":"Agent","input":{}}`, n))
		event("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":`+string(input)+`}`)
	} else {
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
		event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":"reply %d"}`, n))
	}
	event("content_block_stop", `,"index":0`)
	event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":3}`, stop))
	event("message_stop", "")
}

func (m *tinyModel) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 {
		return ""
	}
	return m.requests[len(m.requests)-1]
}
