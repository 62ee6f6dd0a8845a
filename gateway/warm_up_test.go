// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
)

// A warm-up calls no model and costs nothing. Calls pass again once every warm-up has ended; ending one twice counts once.
func TestWarmUp_GoesNowhere(t *testing.T) {
	sent := 0
	upstream := &upstreamFunc{gateway.WireAnthropic, func(*http.Request) (*http.Response, error) {
		sent++
		return answerWith(http.StatusOK, "application/json", message), nil
	}}
	tracker := guard.NewTracker(guard.Budget{MaxRequests: 1})
	run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream, Trackers: []*guard.Tracker{tracker}})
	first, ok := run.WarmUp()
	second, _ := run.WarmUp()
	for range 2 {
		if w := post(run, question); !ok || w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "msg_warm_up") {
			t.Errorf("the warm-up is answered with %d, %s", w.Code, w.Body)
		}
		first()
		first()
	}
	if sent != 0 || run.Usage().Total.Requests != 0 || tracker.Consumed().Requests != 0 {
		t.Errorf("%d calls went out, and %+v was counted", sent, run.Usage().Total)
	}
	second()
	for _, want := range []int{http.StatusOK, http.StatusPaymentRequired} {
		if w := post(run, question); w.Code != want {
			t.Errorf("after the warm-up: status %d, want %d", w.Code, want)
		}
	}
	if sent != 1 || tracker.Consumed().Requests != 1 {
		t.Errorf("%d calls went out, want 1", sent)
	}
}

func TestWarmUp_NotWithBedrock(t *testing.T) {
	run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireBedrock)})
	end, ok := run.WarmUp()
	defer end()
	if ok {
		t.Error("there is")
	}
}
