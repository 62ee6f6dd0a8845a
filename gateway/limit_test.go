// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	_ "github.com/drover-agents/drover/internal/testkit"
)

// sse is an event of a stream.
func sse(data string) string { return "event: x\ndata: " + data + "\n\n" }

func messageStart(input int) string {
	return sse(fmt.Sprintf(`{"type":"message_start","message":{"model":"claude-opus-4-5","usage":{"input_tokens":%d,"output_tokens":1}}}`, input))
}

func messageEnd(output int) string {
	return sse(fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%d}}`, output))
}

const (
	delta       = "event: x\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hi\"}}\n\n"
	messageStop = "event: x\ndata: {\"type\":\"message_stop\"}\n\n"
	streamType  = "text/event-stream"
	frameType   = "application/vnd.amazon.eventstream"
)

// streaming is an upstream whose answers a test writes itself. Its reader ends with the request.
func streaming(write func(w io.Writer)) *upstreamFunc {
	return &upstreamFunc{gateway.WireAnthropic, func(req *http.Request) (*http.Response, error) {
		r, w := io.Pipe()
		go func() {
			write(w)
			w.Close()
		}()
		go func() {
			<-req.Context().Done()
			w.CloseWithError(req.Context().Err())
		}()
		resp := answerWith(http.StatusOK, streamType, "")
		resp.Body = r
		return resp, nil
	}}
}

// assertBilling checks that an answer ends with the error that ends the CLI.
func assertBilling(t *testing.T, body, reason string) {
	t.Helper()
	_, last, ok := strings.Cut(body, "event: error\ndata: ")
	var e struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if !ok || json.Unmarshal([]byte(strings.TrimSuffix(last, "\n\n")), &e) != nil || e.Type != "error" ||
		e.Error.Type != "billing_error" || !strings.Contains(e.Error.Message, reason) {
		t.Errorf("the answer ends with %q", last)
	}
}

func TestLimit_EndsAnAnswerInTheMiddle(t *testing.T) {
	cases := []struct {
		name   string
		budget guard.Budget
		pieces []string
		want   string // what is passed on before the error
		limit  string
	}{
		{"the input is too much", guard.Budget{MaxTotalTokens: 100}, []string{messageStart(100), delta, delta}, messageStart(100), "MaxTotalTokens"},
		{"dollars", guard.Budget{MaxCostUSD: 0.0005}, []string{messageStart(100), delta}, messageStart(100), "MaxCostUSD"},
		{"all in one piece", guard.Budget{MaxInputTokens: 1}, []string{messageStart(100) + delta + delta[:9], delta[9:]}, messageStart(100) + delta, "MaxInputTokens"},
		{"in the middle of an event", guard.Budget{MaxInputTokens: 1}, []string{messageStart(100)[:20], messageStart(100)[20:] + delta[:9], delta[9:] + delta}, messageStart(100), "MaxInputTokens"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var events recorder
				upstream := streaming(func(w io.Writer) {
					for _, piece := range tc.pieces {
						if _, err := io.WriteString(w, piece); err != nil {
							return
						}
					}
					time.Sleep(time.Hour) // nothing more comes
				})
				run := open(t, gateway.New(nil), gateway.RunOptions{
					Upstream: upstream, Emit: events.emit, Trackers: []*guard.Tracker{nil, guard.NewTracker(tc.budget)},
				})
				began := time.Now()
				body := post(run, question).Body.String()
				if !strings.HasPrefix(body, tc.want+"event: error") {
					t.Errorf("got %q, want %q and an error", body, tc.want)
				}
				assertBilling(t, body, tc.limit)
				assertStopped(t, run, &events, tc.limit, guard.ErrBudgetExhausted)
				if since := time.Since(began); since > 0 {
					t.Errorf("it took %s", since)
				}
				if w := post(run, question); w.Code != http.StatusPaymentRequired || !strings.Contains(w.Body.String(), `"billing_error"`) {
					t.Errorf("afterwards: status %d, %s", w.Code, w.Body)
				}
				time.Sleep(2 * time.Hour) // the upstream of the test ends
			})
		})
	}
}

// Whatever ends a run that waits for the next word ends the answer at once.
func TestLimit_EndsASilentAnswer(t *testing.T) {
	outside := advice.Wrap(errors.New("the disk is full"), "buy one")
	cases := []struct {
		name  string
		begin string // what comes before the silence
		want  string
		after time.Duration
	}{
		{"between events", messageStart(1) + delta, messageStart(1) + delta, 0},
		{"before the first", "", "", 0},
		{"in the middle of one", messageStart(1) + delta[:20], messageStart(1) + delta[:20] + "\n\n", time.Second},
		{"after the end was reported", messageStart(1) + messageEnd(5), messageStart(1) + messageEnd(5), time.Second},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				upstream := streaming(func(w io.Writer) { io.WriteString(w, tc.begin); time.Sleep(time.Hour) })
				var events recorder
				run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream, Emit: events.emit})
				time.AfterFunc(time.Minute, func() { run.Stop(outside); run.Stop(errors.New("another reason")) })
				began := time.Now()
				body := post(run, question).Body.String()
				if !strings.HasPrefix(body, tc.want+"event: error") {
					t.Errorf("got %q, want %q and an error", body, tc.want)
				}
				assertBilling(t, body, "the disk is full")
				if strings.Contains(body, "buy one") {
					t.Error("the agent receives the advice for its owner")
				}
				if got, want := time.Since(began), time.Minute+tc.after; got != want {
					t.Errorf("it took %s, want %s", got, want)
				}
				synctest.Wait() // the caller that stops a run reports it afterwards
				assertStopped(t, run, &events, "", outside)
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

func TestLimit_DeadlineEndsASilentAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events recorder
		upstream := streaming(func(w io.Writer) { io.WriteString(w, messageStart(1)); time.Sleep(time.Hour) })
		tracker := guard.NewTracker(guard.Budget{Deadline: guard.FromNow(time.Minute)})
		run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream, Emit: events.emit, Trackers: []*guard.Tracker{tracker}})
		began := time.Now()
		assertBilling(t, post(run, question).Body.String(), "deadline")
		if got := time.Since(began); got != time.Minute {
			t.Errorf("it took %s, want a minute", got)
		}
		synctest.Wait() // the event follows the end of the answer
		assertStopped(t, run, &events, "Deadline", guard.ErrDeadlineExceeded)
		time.Sleep(2 * time.Hour)
	})
}

// What the model has reported the end of is paid for and complete; only its farewell follows.
func TestLimit_CompleteAnswerIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := streaming(func(w io.Writer) {
			for _, piece := range []string{messageStart(10), delta, messageEnd(90), messageStop} {
				io.WriteString(w, piece)
			}
		})
		tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 100})
		run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream, Trackers: []*guard.Tracker{tracker}})
		if got, want := post(run, question).Body.String(), messageStart(10)+delta+messageEnd(90)+messageStop; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := run.Stopped(); !errors.Is(err, guard.ErrBudgetExhausted) {
			t.Errorf("Stopped: %v", err)
		}
	})
}

func TestLimit_BedrockStreamEndsWithAnException(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := streaming(func(io.Writer) { time.Sleep(time.Hour) })
		do := upstream.do
		upstream.wire, upstream.do = gateway.WireBedrock, func(r *http.Request) (*http.Response, error) {
			resp, err := do(r)
			resp.Header.Set("Content-Type", frameType)
			return resp, err
		}
		run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream})
		time.AfterFunc(time.Minute, func() { run.Stop(nil) })
		invoke := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			run.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/"+run.Token()+"/model/m/invoke-with-response-stream", strings.NewReader("{}")))
			return w
		}
		if body := invoke().Body.String(); !strings.Contains(body, ":message-type\a\x00\texception") || !strings.Contains(body, `"billing_error"`) {
			t.Errorf("the stream ends with %q", body)
		}
		if w := invoke(); w.Code != http.StatusPaymentRequired || !strings.Contains(w.Body.String(), `"message":"gateway: the run was stopped"`) {
			t.Errorf("afterwards: status %d, %s", w.Code, w.Body)
		}
		time.Sleep(2 * time.Hour)
	})
}

// Of any number of runs exactly as many requests go out as the budget has; the last one is not cut.
func TestBudget_RequestsAreExact(t *testing.T) {
	const allowed, runs = 7, 5
	var asked atomic.Int64
	upstream := &upstreamFunc{gateway.WireAnthropic, func(*http.Request) (*http.Response, error) {
		asked.Add(1)
		return answerWith(http.StatusOK, streamType, messageStart(1)+delta+messageEnd(1)+messageStop), nil
	}}
	tracker := guard.NewTracker(guard.Budget{MaxRequests: allowed})
	g := gateway.New(nil)
	var answered atomic.Int64
	var wg sync.WaitGroup
	for range runs {
		run := open(t, g, gateway.RunOptions{Upstream: upstream, Trackers: []*guard.Tracker{tracker}})
		for range 4 {
			wg.Go(func() {
				if w := post(run, question); w.Code == http.StatusOK && strings.HasSuffix(w.Body.String(), messageStop) {
					answered.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if asked.Load() != allowed || answered.Load() != allowed {
		t.Errorf("%d requests went out and %d were answered, want %d", asked.Load(), answered.Load(), allowed)
	}
}

// Many runs share a budget. No call begins once it is spent, and those under way then report at most
// their own usage, so that less is consumed than the limit and one answer for each that may be in
// flight.
func TestBudget_SharedHoldsUnderConcurrency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := int64(rapid.IntRange(1, 500).Draw(t, "limit"))
		inFlight := rapid.IntRange(1, 8).Draw(t, "in flight")
		runs := rapid.IntRange(1, 6).Draw(t, "runs")
		input, output := rapid.IntRange(1, 30).Draw(t, "input"), rapid.IntRange(1, 30).Draw(t, "output")
		answer := messageStart(input) + delta + messageEnd(output) + messageStop
		tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: limit})
		g := gateway.New(&gateway.Options{MaxInFlight: inFlight})
		upstream := &upstreamFunc{gateway.WireAnthropic, func(*http.Request) (*http.Response, error) {
			return answerWith(http.StatusOK, streamType, answer), nil
		}}
		var wg sync.WaitGroup
		var sum atomic.Int64
		for range runs {
			run, err := g.Open(gateway.RunOptions{Upstream: upstream, Trackers: []*guard.Tracker{tracker}})
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				defer run.Close()
				for range 1000 {
					if post(run, question).Code == http.StatusPaymentRequired {
						sum.Add(run.Usage().Total.AllInput() + run.Usage().Total.Output)
						return
					}
				}
				t.Errorf("a run did not end")
			})
		}
		wg.Wait()
		consumed := tracker.Consumed().TotalTokens()
		if most := limit + int64(inFlight*(input+output)); consumed < limit || consumed >= most {
			t.Errorf("%d tokens are consumed, want at least %d and less than %d", consumed, limit, most)
		}
		if sum.Load() != consumed {
			t.Errorf("the runs count %d, the tracker %d", sum.Load(), consumed)
		}
	})
}

func TestOpen_InvalidBudgetIsRefused(t *testing.T) {
	_, err := gateway.New(nil).Open(gateway.RunOptions{
		Upstream: whole(gateway.WireAnthropic), Trackers: []*guard.Tracker{guard.NewTracker(guard.Budget{MaxRequests: -1})},
	})
	if err == nil || !strings.Contains(advice.Text(err), "Budget.MaxRequests is -1") {
		t.Errorf("got %v", err)
	}
}
