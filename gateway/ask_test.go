// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/gateway"
)

func TestInspect_GetsTheFieldsOfTheRequest(t *testing.T) {
	for _, test := range []struct {
		name, body string
		want       gateway.Ask
	}{
		{"no field is set", question, gateway.Ask{Model: "claude-opus-4-5", Agent: gateway.MainAgent}},
		{
			"every field is set",
			`{"model":"claude-opus-4-6","max_tokens":64000,"thinking":{"type":"adaptive"},"output_config":{"task_budget":{},"effort":"m\u0061x"},"tools":[{"name":"a"},{"name":"b"}]}`,
			gateway.Ask{Model: "claude-opus-4-6", Agent: gateway.MainAgent, Effort: "max", Thinking: "adaptive", MaxTokens: 64000, Tools: 2},
		},
		{
			"other types than expected",
			`{"model":"claude-opus-4-6","max_tokens":"many","thinking":true,"output_config":["effort"],"tools":{"a":1}}`,
			gateway.Ask{Model: "claude-opus-4-6", Agent: gateway.MainAgent},
		},
		{"an effort that is no word", `{"model":"m","output_config":{"effort":3}}`, gateway.Ask{Model: "m", Agent: gateway.MainAgent}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []gateway.Ask
			var events recorder
			run := open(t, gateway.New(nil), gateway.RunOptions{
				Upstream: whole(gateway.WireAnthropic), Emit: events.emit,
				Inspect: func(a gateway.Ask) error { got = append(got, a); return nil },
			})
			if w := post(run, test.body); w.Code != http.StatusOK {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if diff := cmp.Diff([]gateway.Ask{test.want}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			calls := eventsOf[gateway.ModelCall](&events)
			if len(calls) != 1 || calls[0].Effort != test.want.Effort || calls[0].Thinking != test.want.Thinking {
				t.Errorf("calls are %+v, want the effort and the thinking that were asked for", calls)
			}
		})
	}
}

// An upstream may take the first or the last of two fields. The estimate for an answer that was left is higher
// where it is not streamed.
func TestStream_TwoFieldsCountAsNone(t *testing.T) {
	for fields, want := range map[string]bool{
		`"stream":true`: true, `"stream":false`: false, `"stream":"true"`: false,
		`"stream":false,"stream":true`: false, `"stream":true,"stream":false`: false, `"stream":true,"stre\u0061m":true`: false,
	} {
		var events recorder
		run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireAnthropic), Emit: events.emit})
		if w := post(run, `{"model":"claude-opus-4-6",`+fields+`}`); w.Code != http.StatusOK {
			t.Fatalf("%s: status %d: %s", fields, w.Code, w.Body)
		}
		if calls := eventsOf[gateway.ModelCall](&events); len(calls) != 1 || calls[0].Streamed != want {
			t.Errorf("%s: %+v, want streamed %t", fields, calls, want)
		}
	}
}

func TestInspect_ErrorEndsTheRunAtNoCost(t *testing.T) {
	var sent atomic.Int64
	upstream := &upstreamFunc{gateway.WireAnthropic, func(*http.Request) (*http.Response, error) {
		sent.Add(1)
		return answerWith(http.StatusOK, "application/json", `{}`), nil
	}}
	refused := errors.New("not this one")
	run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream, Inspect: func(gateway.Ask) error { return refused }})
	for range 2 {
		if w := post(run, question); w.Code != http.StatusPaymentRequired || !strings.Contains(w.Body.String(), "not this one") {
			t.Errorf("status %d: %s, want 402 and the reason", w.Code, w.Body)
		}
	}
	if !errors.Is(run.Stopped(), refused) || sent.Load() != 0 || run.Usage().Total.Requests != 0 {
		t.Errorf("stopped by %v after %d calls", run.Stopped(), sent.Load())
	}
}
