// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/drover-agents/drover/guard"
)

func TestModelText_Refusals(t *testing.T) {
	open := func(o RunOptions) *Run {
		o.Upstream = nowhere{}
		run, err := New(nil).Open(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { run.Close() })
		return run
	}
	limited := open(RunOptions{
		Models: []string{"claude-opus-4-5", "unpriced"}, Remote: &Remote{}, Trackers: []*guard.Tracker{guard.NewTracker(guard.Budget{MaxCostUSD: 1})},
	})
	closed := open(RunOptions{})
	closed.Close()
	const opus = `{"model":"claude-opus-4-5"`
	for _, tc := range []struct {
		run               *Run
		token, path, want string
		body              io.Reader
	}{
		{limited, "", "/v1/messages", "does not have the token of this run. Do not call the gateway directly", nil},
		{limited, limited.Token(), "/v1/files", "passes only model calls. Do not use it for other requests", nil},
		{limited, limited.Token(), "/v1/messages", "more than 67108864 bytes. Send a shorter request", strings.NewReader(strings.Repeat("x", maxBody+1))},
		{limited, limited.Token(), "/v1/messages", "before its body was complete. Send it again", iotest.ErrReader(io.ErrUnexpectedEOF)},
		{limited, limited.Token(), "/v1/messages", "Send one JSON object that names one model", strings.NewReader("x")},
		{limited, limited.Token(), "/v1/messages", `model \"other\" is not allowed in this run. Use an allowed model`, strings.NewReader(`{"model":"other"}`)},
		{limited, limited.Token(), "/v1/messages", `model \"unpriced\" has no price, and this run has a budget in dollars. Use a model with a price`, strings.NewReader(`{"model":"unpriced"}`)},
		{limited, limited.Token(), "/v1/messages", `fallback model \"other\" is not allowed in this run or has no price. Remove it`, strings.NewReader(opus + `,"fallbacks":[{"model":"other"}]}`)},
		{limited, limited.Token(), "/v1/messages", "it has container. This run does not allow that: continue without it", strings.NewReader(opus + `,"container":"c"}`)},
		{limited, limited.Token(), "/v1/messages", "Its price is not known, and this run has a budget in dollars: continue without it", strings.NewReader(opus + `,"speed":"fast"}`)},
		{closed, closed.Token(), "/v1/messages", "this run is over. Do not send further requests", nil},
	} {
		req := httptest.NewRequest(http.MethodPost, tc.path, tc.body)
		req.Header.Set("X-Api-Key", tc.token)
		w := httptest.NewRecorder()
		tc.run.ServeHTTP(w, req)
		if !strings.Contains(w.Body.String(), tc.want) || tc.run == limited && !strings.Contains(w.Body.String(), "Drover's gateway refused this request: ") {
			t.Errorf("got status %d: %s\nwant %s", w.Code, w.Body, tc.want)
		}
	}
}
