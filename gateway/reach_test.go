// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-agents/drover/gateway"
)

// An upstream that cannot be reached is reported with what refused, to the agent and in the event, and costs
// nothing.
func TestUpstream_UnreachableIsReportedWithItsError(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := closed.Addr().String()
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = nil
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	resetting, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer resetting.Close()
	go func() {
		for {
			conn, err := resetting.Accept()
			if err != nil {
				return
			}
			conn.(*net.TCPConn).SetLinger(0)
			conn.Read(make([]byte, 1))
			conn.Close()
		}
	}()
	for name, tc := range map[string]struct {
		url, want string
		charged   bool // it may have got the request
	}{
		"connection refused": {"http://" + refusing, refusing + " refused the connection", false},
		"unknown host":       {"http://no-such-host.invalid", "the host no-such-host.invalid", false},
		"certificate":        {secure.URL, "its certificate is not accepted (TLS: x509", false},
		"no TLS":             {strings.Replace(plain.URL, "http:", "https:", 1), "does not speak TLS", false},
		"connection reset":   {"http://" + resetting.Addr().String(), resetting.Addr().String() + " broke off the connection", true},
	} {
		t.Run(name, func(t *testing.T) {
			var events recorder
			run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: endpoint(t, tc.url), Emit: events.emit})
			w := post(run, question)
			if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), tc.want) || !strings.Contains(w.Body.String(), `"type":"api_error"`) {
				t.Errorf("the agent reads %d: %s", w.Code, w.Body)
			}
			if again := w.Header().Get("X-Should-Retry") != "false"; again != tc.charged {
				t.Errorf("the agent may try again: %v, want %v", again, tc.charged)
			}
			calls := eventsOf[gateway.ModelCall](&events)
			if len(calls) != 1 || !strings.Contains(calls[0].Error, tc.want) || calls[0].Estimated != tc.charged || (calls[0].Tokens.Input > 0) != tc.charged {
				t.Errorf("the events are %+v", calls)
			}
		})
	}
}

// What the upstream refuses keeps its meaning: status and body pass, and the event has the API's name for it, also
// if the answer has none.
func TestUpstream_RefusalsKeepStatusAndBody(t *testing.T) {
	for _, tc := range []struct {
		name, kind, text string
		status, want     int
	}{
		{"no credit", "billing_error", "Your credit balance is too low", 402, 402},
		{"refused key", "authentication_error", "invalid x-api-key", 401, 403}, // the CLI would try again for ever
		{"forbidden", "permission_error", "not for this key", 403, 403},
		{"unknown model", "not_found_error", "model: claude-none", 404, 404},
		{"prompt too long", "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum", 400, 400},
		{"request too large", "request_too_large", "too large", 413, 413},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, tc.kind, tc.text)
			for _, sent := range []string{body, "<html>no</html>"} {
				var events recorder
				upstream := &upstreamFunc{gateway.WireAnthropic, func(*http.Request) (*http.Response, error) {
					return answerWith(tc.status, "application/json", sent), nil
				}}
				run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream, Emit: events.emit})
				if w := post(run, question); w.Code != tc.want || w.Body.String() != sent {
					t.Errorf("got status %d: %s", w.Code, w.Body)
				}
				calls := eventsOf[gateway.ModelCall](&events)
				if len(calls) != 1 || calls[0].Error != tc.kind || calls[0].Tokens != (gateway.Tokens{}) || run.Stopped() != nil {
					t.Errorf("the events are %+v, and the run was ended by %v", calls, run.Stopped())
				}
			}
		})
	}
}
