// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The JSON of events is read by others: names and types stay.
func TestEvents_AsJSON(t *testing.T) {
	payloads := []event.Payload{
		gateway.ModelCall{
			Operation: "messages", Model: "claude-opus-4-5", Provider: "aws.bedrock", Agent: "main", Status: 200, Streamed: true,
			Effort: "high", Thinking: "adaptive",
			Tokens:  gateway.Tokens{Input: 1, CacheRead: 2, CacheWrite5m: 3, CacheWrite1h: 4, Output: 5, Thinking: 6, WebSearches: 7},
			CostUSD: 0.25, Attempts: 2, FirstByteMS: 12.345, DurationMS: 678.9, StopReason: "end_turn",
		},
		gateway.ModelCall{Operation: "messages", Model: "m", Agent: "a1", Unpriced: true, Error: "the agent has gone"},
		gateway.Refused{Method: "GET", Path: "/v1/files", Model: "m", Status: 403, Reason: "the gateway passes only model calls. Do not use it for other requests"},
		gateway.Limit{Limit: "MaxCostUSD", Consumed: 1.5, Max: 1, Reason: "guard: budget exhausted"},
		gateway.Limit{Reason: "the disk is full"},
		gateway.BackOff{Upstream: "anthropic", Status: 529, Attempt: 1, WaitMS: 1500},
	}
	var got bytes.Buffer
	for _, p := range payloads {
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(string(p.EventKind()) + " " + string(data) + "\n")
	}
	const golden = "testdata/events.golden"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s\n  next: go test ./gateway -run TestEvents_AsJSON -update, if the change is meant", diff)
	}
}

// An agent that goes on and on does not fill the disk.
func TestEvents_RefusalsAreLimited(t *testing.T) {
	var events recorder
	run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireAnthropic), Emit: events.emit})
	for range 1100 {
		post(run, "no JSON")
	}
	if got := len(eventsOf[gateway.Refused](&events)); got != 1000 {
		t.Errorf("%d refusals are emitted, want 1000", got)
	}
}

// What is counted by model and by agent adds up.
func TestUsage_ByModelAndAgent(t *testing.T) {
	run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireAnthropic)})
	postAs := func(agent string) {
		req := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(question))
		req.Header.Set("X-Api-Key", run.Token())
		if agent != "" {
			req.Header.Set("X-Claude-Code-Agent-Id", agent)
		}
		run.ServeHTTP(httptest.NewRecorder(), req)
	}
	for _, agent := range []string{"", "a1", "a1", "a2"} {
		postAs(agent)
	}
	one := gateway.Count{Requests: 1, Tokens: gateway.Tokens{Input: 10, Output: 10}, USD: 0.0003}
	two := gateway.Count{Requests: 2, Tokens: gateway.Tokens{Input: 20, Output: 20}, USD: 0.0006}
	four := gateway.Count{Requests: 4, Tokens: gateway.Tokens{Input: 40, Output: 40}, USD: 0.0012}
	want := gateway.Usage{
		Total: four, ByModel: map[string]gateway.Count{"claude-opus-4-5": four},
		ByAgent: map[string]gateway.Count{gateway.MainAgent: one, "a1": two, "a2": one},
	}
	if diff := cmp.Diff(want, run.Usage()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
