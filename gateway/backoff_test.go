// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
)

// busy is an upstream that has too much to do for the first answers.
type busy struct {
	mu      sync.Mutex
	answers []*http.Response
	at      []time.Duration // when it was asked
	began   time.Time
}

func (b *busy) upstream() *upstreamFunc {
	b.began = time.Now()
	return &upstreamFunc{gateway.WireAnthropic, func(*http.Request) (*http.Response, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.at = append(b.at, time.Since(b.began))
		if len(b.answers) == 0 {
			return answerWith(http.StatusOK, "application/json", message), nil
		}
		next := b.answers[0]
		b.answers = b.answers[1:]
		return next, nil
	}}
}

func TestBackOff_WaitsAsLongAsTheUpstreamAsks(t *testing.T) {
	cases := []struct {
		name        string
		status      int
		headers     func() []string
		least, most time.Duration
	}{
		{"seconds", 429, func() []string { return []string{"Retry-After", "7"} }, 7 * time.Second, 7 * time.Second},
		{"milliseconds", 529, func() []string { return []string{"Retry-After-Ms", "1500", "Retry-After", "60"} }, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"a date", 429, func() []string {
			return []string{"Retry-After", time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)}
		}, 89 * time.Second, 90 * time.Second},
		{"nothing", 529, func() []string { return nil }, time.Second, 2 * time.Second},
		{"nonsense", 429, func() []string { return []string{"Retry-After", "soon"} }, time.Second, 2 * time.Second},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var events recorder
				b := &busy{answers: []*http.Response{answerWith(tc.status, "application/json", `{}`, tc.headers()...)}}
				tracker := guard.NewTracker(guard.Budget{MaxRequests: 2})
				g := gateway.New(&gateway.Options{MaxInFlight: 1}) // a call that waits takes no place
				run := open(t, g, gateway.RunOptions{
					Upstream: b.upstream(), Emit: events.emit, Trackers: []*guard.Tracker{tracker},
				})
				if w := post(run, question); w.Code != http.StatusOK {
					t.Errorf("got status %d, want 200", w.Code)
				}
				if got := b.at[1]; got < tc.least || got > tc.most {
					t.Errorf("it was asked again after %s, want %s to %s", got, tc.least, tc.most)
				}
				if got := eventsOf[gateway.BackOff](&events); len(got) != 1 || got[0].Status != tc.status || got[0].Attempt != 1 {
					t.Errorf("the events are %+v", got)
				}
				if got := eventsOf[gateway.ModelCall](&events); len(got) != 1 || got[0].Attempts != 2 {
					t.Errorf("the events are %+v", got)
				}
				if got, tracked := run.Usage().Total.Requests, tracker.Consumed().Requests; got != 1 || tracked != 1 {
					t.Errorf("%d requests are counted, and %d by the tracker, want 1", got, tracked)
				}
			})
		})
	}
}

func TestBackOff_LastRefusalIsPassedUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{}
		for i := range 100 {
			b.answers = append(b.answers, answerWith(529, "application/json", fmt.Sprintf(`{"answer":%d}`, i), "Request-Id", fmt.Sprint(i)))
		}
		run := open(t, gateway.New(&gateway.Options{MaxWait: time.Minute}), gateway.RunOptions{Upstream: b.upstream()})
		w := post(run, question)
		last := len(b.at) - 1
		if w.Code != 529 || w.Body.String() != fmt.Sprintf(`{"answer":%d}`, last) || w.Header().Get("Request-Id") != fmt.Sprint(last) {
			t.Errorf("got status %d: %s, want the last of %d answers", w.Code, w.Body, len(b.at))
		}
		if got := time.Since(b.began); got > time.Minute || last < 3 {
			t.Errorf("the call was held back for %s over %d answers", got, len(b.at))
		}
	})
}

func TestBackOff_LongWaitIsPassedToTheAgent(t *testing.T) {
	cases := []struct{ name, header, value string }{
		{"longer than anybody waits", "Retry-After", "3600"},
		{"retry forbidden", "X-Should-Retry", "false"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &busy{answers: []*http.Response{answerWith(429, "application/json", `{}`, tc.header, tc.value)}}
				run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: b.upstream()})
				if w := post(run, question); w.Code != 429 || time.Since(b.began) != 0 {
					t.Errorf("got status %d after %s", w.Code, time.Since(b.began))
				}
				if w := post(run, question); w.Code != 200 || time.Since(b.began) != 0 {
					t.Errorf("the next call got status %d after %s", w.Code, time.Since(b.began))
				}
			})
		})
	}
}

// An upstream that refuses calls of one run may refuse them for what they are. The others wait for a moment.
func TestBackOff_RefusalOfOneRunDelaysOthersBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{answers: []*http.Response{answerWith(429, "application/json", `{}`, "Retry-After", "10")}}
		g, upstream := gateway.New(nil), b.upstream()
		one := open(t, g, gateway.RunOptions{Upstream: upstream})
		other := open(t, g, gateway.RunOptions{Upstream: upstream})
		var wg sync.WaitGroup
		wg.Go(func() { post(one, question) })
		time.Sleep(time.Second)
		wg.Go(func() { post(other, question) })
		wg.Wait()
		if want := []time.Duration{0, 5 * time.Second, 10 * time.Second}; !slices.Equal(b.at, want) {
			t.Errorf("the upstream was asked at %v, want %v", b.at, want)
		}
	})
}

func TestBackOff_DeadlineEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{answers: []*http.Response{answerWith(429, "application/json", `{}`, "Retry-After", "60")}}
		tracker := guard.NewTracker(guard.Budget{Deadline: guard.FromNow(5 * time.Second)})
		run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: b.upstream(), Trackers: []*guard.Tracker{tracker}})
		w := post(run, question)
		if w.Code != http.StatusPaymentRequired || time.Since(b.began) != 5*time.Second {
			t.Errorf("got status %d after %s, want 402 at the deadline", w.Code, time.Since(b.began))
		}
	})
}

func TestBackOff_ClientThatLeavesStopsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{answers: []*http.Response{answerWith(429, "application/json", `{}`, "Retry-After", "60")}}
		run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: b.upstream()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/messages", strings.NewReader(question))
		req.Header.Set("X-Api-Key", run.Token())
		run.ServeHTTP(httptest.NewRecorder(), req)
		if len(b.at) != 1 || time.Since(b.began) != time.Second {
			t.Errorf("it was asked at %v, and the call ended after %s", b.at, time.Since(b.began))
		}
	})
}

// slow is an upstream whose answers take a second; it records how many run at once, and whose turn it
// was.
type slow struct {
	mu            sync.Mutex
	running, most int
	order         []string
}

func (s *slow) upstream() *upstreamFunc {
	return &upstreamFunc{gateway.WireAnthropic, func(r *http.Request) (*http.Response, error) {
		s.mu.Lock()
		s.running++
		s.most = max(s.most, s.running)
		s.order = append(s.order, r.Header.Get("X-Run"))
		s.mu.Unlock()
		time.Sleep(time.Second)
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
		return answerWith(http.StatusOK, "application/json", message), nil
	}}
}

func TestLane_BusyRunDoesNotStarveAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		g, upstream := gateway.New(&gateway.Options{MaxInFlight: 2}), s.upstream()
		var wg sync.WaitGroup
		call := func(run *gateway.Run, name string, n int) {
			for range n {
				wg.Go(func() {
					req := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(question))
					req.Header.Set("X-Api-Key", run.Token())
					req.Header.Set("X-Run", name)
					run.ServeHTTP(httptest.NewRecorder(), req)
				})
			}
		}
		greedy := open(t, g, gateway.RunOptions{Upstream: upstream})
		modest := open(t, g, gateway.RunOptions{Upstream: upstream})
		third := open(t, g, gateway.RunOptions{Upstream: upstream})
		call(greedy, "greedy", 20)
		synctest.Wait()
		call(modest, "modest", 2)
		call(third, "third", 2)
		wg.Wait()
		if s.most != 2 {
			t.Errorf("%d calls ran at once, want 2", s.most)
		}
		// Two greedy ones run already; then everybody has a turn before anybody has a second.
		for _, name := range []string{"modest", "third"} {
			if got := slices.Index(s.order, name); got > 5 {
				t.Errorf("the first call of %s was number %d: %v", name, got+1, s.order)
			}
		}
		if got := slices.Index(s.order[6:], "modest"); got > 3 {
			t.Errorf("the second call of modest comes late: %v", s.order)
		}
	})
}
