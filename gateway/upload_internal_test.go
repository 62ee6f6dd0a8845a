// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-agents/drover/event"
)

// nowhere is an upstream that fails.
type nowhere struct{}

func (nowhere) Name() string                                    { return "nowhere" }
func (nowhere) Wire() *Wire                                     { return WireAnthropic }
func (nowhere) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("nowhere") }

// What an agent sends is held outside of its cell, where the limits of the cell do not count.
func TestUpload_MemoryOutsideIsBounded(t *testing.T) {
	var refused []event.Payload
	run, err := New(nil).Open(RunOptions{Upstream: nowhere{}, Emit: func(p event.Payload) {
		if _, ok := p.(Refused); ok {
			refused = append(refused, p)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	ask := func() int {
		req := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(`{"model":"m"}`))
		req.Header.Set("X-Api-Key", run.Token())
		w := httptest.NewRecorder()
		run.ServeHTTP(w, req)
		return w.Code
	}
	run.held.Add(maxHeld - 5) // by other requests
	if got := ask(); got != http.StatusTooManyRequests || len(refused) != 1 {
		t.Errorf("got status %d and the refusals %+v, want 429 and one", got, refused)
	}
	run.held.Add(5 - maxHeld)
	if got := ask(); got != http.StatusBadGateway {
		t.Errorf("afterwards got status %d, want that of the upstream", got)
	}
	if got := run.held.Load(); got != 0 {
		t.Errorf("%d bytes are still held", got)
	}
}
