// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// A handler is opened for each attempt, and its end decides how that ended. A permanent error is the end of the run.
func TestHandleEach_OpensAndEndsEachAttempt(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	failure := errors.New("the disk is full")
	var mu sync.Mutex
	var opened, evaluated int
	var ends []error
	var verdicts []error // of the ends, one after the other
	each := fleet.HandleEach("asks", func(_ context.Context, run string, q question) (h fleet.Handler[question, string], end func(error) error, err error) {
		if q.Text == "Never" {
			return h, nil, fleet.Permanent(failure)
		}
		mu.Lock()
		opened++
		mu.Unlock()
		h.Adapter = agenttest.New(answers(run))
		h.Prepare = func(_ context.Context, q question, _ *session.Session) (*prompt.Prompt[string], *drover.Options, error) {
			if q.Text == "Panic" {
				panic("oh")
			}
			mu.Lock()
			evaluated++
			mu.Unlock()
			p, err := prompt.FromText[string](q.Text)
			return p, nil, err
		}
		return h, func(err error) error {
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, err)
			if err == nil && len(verdicts) > 0 {
				err, verdicts = verdicts[0], verdicts[1:]
			}
			return err
		}, nil
	})
	work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{each}, Backoff: quick, Attempts: 3})
	check := func(text string, state fleet.State, attempts int64, wantOpened, wantEvaluated, wantEnds int) *fleet.Result {
		t.Helper()
		r := submit(t, f, text, "")
		result := wait(t, r)
		mu.Lock()
		defer mu.Unlock()
		if result.State != state || result.Attempts != attempts || opened != wantOpened || evaluated != wantEvaluated || len(ends) != wantEnds {
			t.Errorf("%s: %+v; opened %d, evaluated %d, ended %d times; want %s after %d attempts; %d, %d, %d",
				text, result, opened, evaluated, len(ends), state, attempts, wantOpened, wantEvaluated, wantEnds)
		}
		var answer string
		if state == fleet.Succeeded && (result.Decode(&answer) != nil || answer != r.ID()) {
			t.Errorf("%s: the handler has another run: %q", text, answer)
		}
		opened, evaluated, ends = 0, 0, nil
		return result
	}
	check("Why?", fleet.Succeeded, 1, 1, 1, 1)
	verdicts = []error{failure} // the next attempt uses the answer of the first one
	check("Why?", fleet.Succeeded, 2, 2, 1, 2)
	verdicts = []error{fleet.Permanent(failure)}
	if result := check("Why?", fleet.Dead, 1, 1, 1, 1); result.Reason != failure.Error() {
		t.Errorf("the reason is %q", result.Reason)
	}
	check("Never", fleet.Dead, 1, 0, 0, 0)
	check("Panic", fleet.Dead, 3, 3, 0, 3)
	r, err := f.Submit(t.Context(), "asks", []int{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result := wait(t, r); result.State != fleet.Dead || result.Attempts != 1 {
		t.Errorf("a request that does not decode: %+v", result)
	}
}

// A status has what a list shows.
func TestRun_Status(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		if known, err := f.Knows(t.Context(), "asks"); known || err != nil {
			t.Errorf("Knows before a worker = %t, %v", known, err)
		}
		r := submit(t, f, "Why?", "")
		s, err := r.Status(t.Context())
		if err != nil || s.State != fleet.Queued || s.Submitted.IsZero() || s.Result != nil || s.Attempts != 0 {
			t.Errorf("Status of a run that waits = %+v, %v", s, err)
		}
		if request, err := r.Request(t.Context()); err != nil || string(request) != `{"text":"Why?"}` {
			t.Errorf("Request = %s, %v", request, err)
		}
		work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{asks(nil, answers("ok"))}})
		wait(t, r)
		if s, err = r.Status(t.Context()); err != nil || s.State != fleet.Succeeded || s.Result == nil || s.Attempts != 1 {
			t.Errorf("Status of a run that has ended = %+v, %v", s, err)
		}
		if known, err := f.Knows(t.Context(), "asks"); !known || err != nil {
			t.Errorf("Knows after a worker = %t, %v", known, err)
		}
	})
}
