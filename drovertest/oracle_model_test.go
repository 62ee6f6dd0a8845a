// SPDX-License-Identifier: Apache-2.0

package drovertest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/drovertest"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/gatewaytest"
)

// An oracleModel is the invented model of gatewaytest, with steps for a script, and a memory of what it was asked.
type oracleModel struct {
	upstream gateway.Upstream
	closed   chan struct{}
	// next is what it does when it is called, by the number of the call and the question.
	next func(n int, question string) (drovertest.Step, bool)

	mu        sync.Mutex
	questions []string
}

var _ drovertest.Model = (*oracleModel)(nil)

func newModel(t *testing.T, next func(n int, question string) (drovertest.Step, bool)) *oracleModel {
	t.Helper()
	m := &oracleModel{closed: make(chan struct{}), next: next}
	server := httptest.NewServer(m)
	t.Cleanup(func() {
		close(m.closed)
		server.Close()
	})
	var err error
	if m.upstream, err = gateway.NewEndpoint(gatewaytest.Wire(), server.URL, gateway.BearerToken("the real key")); err != nil {
		t.Fatal(err)
	}
	return m
}

// inOrder does one step after the other.
func inOrder(steps []drovertest.Step) func(int, string) (drovertest.Step, bool) {
	return func(n int, _ string) (drovertest.Step, bool) {
		if n >= len(steps) {
			return drovertest.Step{}, false
		}
		return steps[n], true
	}
}

func (m *oracleModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	m.mu.Lock()
	n := len(m.questions)
	m.questions = append(m.questions, string(body))
	m.mu.Unlock()
	switch step, ok := m.next(n, string(body)); {
	case !ok:
		gatewaytest.Model().ServeHTTP(w, r) // which says that there is nothing left
	case step.Wait:
		select {
		case <-r.Context().Done():
		case <-m.closed:
		}
	default:
		gatewaytest.Model(answerOf(n, step)).ServeHTTP(w, r)
	}
}

// answerOf is a step in the words of the invented model.
func answerOf(n int, s drovertest.Step) gatewaytest.Answer {
	var lines []string
	if s.Text != "" {
		lines = append(lines, s.Text)
	}
	calls := s.Calls
	if s.Answer != nil {
		calls = append(calls, drovertest.Call{Tool: "answer", Input: map[string]any{"value": s.Answer}})
	}
	for i, c := range calls {
		input, err := json.Marshal(c.Input)
		if err != nil {
			panic(err) // plain values only
		}
		lines = append(lines, fmt.Sprintf("rite call-%d-%d %s %s", n, i, c.Tool, input))
	}
	return gatewaytest.Answer{Words: []string{strings.Join(lines, "\n")}, Input: max(s.Tokens, 10), Output: 1}
}

// Read implements [drovertest.Model].
func (m *oracleModel) Read(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.questions {
		if strings.Contains(q, text) {
			return true
		}
	}
	return false
}

// Calls implements [drovertest.Model].
func (m *oracleModel) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.questions)
}

// Await implements [drovertest.Model].
func (m *oracleModel) Await(ctx context.Context, calls int) error {
	for m.Calls() < calls {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}
