// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/guard"
	_ "github.com/drover-agents/drover/internal/testkit"
)

// An endingCall is a call whose answer is ended at a byte of it, in one of the ways in which calls end.
type endingCall struct {
	wire         *Wire
	contentType  string
	path         string // without the token of Bedrock
	body         []byte // of the answer
	tokensAt     []int  // what the model has read and written when so many bytes are out
	input, total int
}

const (
	endingInput  = 40
	endingDeltas = 4
	deltaTokens  = 7 // in a piece of the answer
)

// endingCalls are the forms of an answer.
func endingCalls() map[string]*endingCall {
	text := strings.Repeat("abc", deltaTokens)
	events := []string{fmt.Sprintf(`{"type":"message_start","message":{"model":"claude-opus-4-5","usage":{"input_tokens":%d,"output_tokens":1}}}`, endingInput)}
	for range endingDeltas {
		events = append(events, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+text+`"}}`)
	}
	const output = endingDeltas * deltaTokens
	events = append(events, fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%d}}`, output), `{"type":"message_stop"}`)
	streamed := func(wire *Wire, contentType, path string, encode func([]string) []byte) *endingCall {
		c := &endingCall{wire: wire, contentType: contentType, path: path, input: endingInput, total: endingInput + output}
		written := endingInput
		for n, e := range events {
			for range encode([]string{e}) {
				c.tokensAt = append(c.tokensAt, written)
			}
			if n >= 1 && n <= endingDeltas {
				written += deltaTokens
			}
		}
		c.tokensAt = append(c.tokensAt, written)
		c.body = encode(events)
		return c
	}
	whole := &endingCall{
		wire: WireAnthropic, contentType: "application/json", path: "/v1/messages", input: endingInput, total: endingInput + output,
		body: fmt.Appendf(nil, `{"type":"message","model":"claude-opus-4-5","content":[{"type":"text","text":%q}],"usage":{"input_tokens":%d,"output_tokens":%d}}`,
			strings.Repeat(text, endingDeltas), endingInput, output),
	}
	for range len(whole.body) + 1 {
		whole.tokensAt = append(whole.tokensAt, whole.total) // it is sent when all of it is written
	}
	invoked := *whole
	invoked.wire, invoked.path = WireBedrock, "/model/claude-opus-4-5/invoke"
	return map[string]*endingCall{
		"server-sent events": streamed(WireAnthropic, "text/event-stream", "/v1/messages", func(e []string) []byte { return sseOf(e, "\n") }),
		"frames of AWS":      streamed(WireBedrock, eventStreamType, "/model/claude-opus-4-5/invoke-with-response-stream", framesOf),
		"JSON":               whole, "JSON of Bedrock": &invoked,
	}
}

// request has as many bytes as its tokens need, and allows an answer of the usual length.
func (e *endingCall) request() string {
	stream := e.contentType != "application/json"
	return fmt.Sprintf(`{"model":"claude-opus-4-5","max_tokens":%d,"stream":%t,"messages":%q}`, e.total-e.input, stream, strings.Repeat("word", endingInput))
}

// The ways in which a call ends.
const (
	endByAgent       = "the agent hangs up and the answer goes on"
	endByAgentSilent = "the agent hangs up and nothing more comes"
	endByReset       = "the upstream breaks off"
	endByEOF         = "the stream is torn"
	endByStop        = "the run is stopped"
	endByClose       = "the run is closed"
	endByNoHead      = "the upstream breaks off before the head"
	endByWaitingHead = "the agent hangs up before the head"
)

var endings = []string{endByAgent, endByAgentSilent, endByReset, endByEOF, endByStop, endByClose, endByNoHead, endByWaitingHead}

// An endingUpstream answers all calls in one form and has them end at a byte.
type endingUpstream struct {
	*endingCall
	next    func() (at int, way string)
	written atomic.Int64 // tokens, as the model would charge for them
	run     *Run         // that is stopped or closed
	closing sync.WaitGroup
}

func (*endingUpstream) Name() string  { return "ending" }
func (u *endingUpstream) Wire() *Wire { return u.wire }

type hangUpKey struct{}

func (u *endingUpstream) RoundTrip(req *http.Request) (*http.Response, error) {
	at, way := u.next()
	hangUp := req.Context().Value(hangUpKey{}).(context.CancelFunc)
	if way == endByNoHead || way == endByWaitingHead {
		u.written.Add(int64(u.tokensAt[0]))
		if way == endByNoHead {
			return nil, fmt.Errorf("read: %w", syscall.ECONNRESET)
		}
		hangUp()
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	r, w := io.Pipe()
	context.AfterFunc(req.Context(), func() { w.CloseWithError(req.Context().Err()) })
	go u.write(req.Context(), w, at, way, hangUp)
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {u.contentType}}, Body: r}
	return resp, nil
}

func (u *endingUpstream) write(ctx context.Context, w *io.PipeWriter, at int, way string, hangUp func()) {
	u.written.Add(int64(u.tokensAt[0]))
	u.send(w, 0, at)
	switch way {
	case endByAgent:
		hangUp()
		u.send(w, at, len(u.body))
		w.Close()
	case endByAgentSilent:
		hangUp()
		<-ctx.Done()
	case endByReset:
		w.CloseWithError(fmt.Errorf("read: %w", syscall.ECONNRESET))
	case endByEOF:
		w.Close()
	case endByStop:
		u.run.Stop(nil)
		<-ctx.Done()
	case endByClose:
		u.closing.Go(func() { u.run.Close() })
		<-ctx.Done()
	}
}

// send writes a part of the answer, and counts what the model has written by then.
func (u *endingUpstream) send(w io.Writer, from, to int) {
	if from == to {
		return
	}
	if _, err := w.Write(u.body[from:to]); err == nil {
		u.written.Add(int64(u.tokensAt[to] - u.tokensAt[from]))
	}
}

// call makes one call and waits for its end.
func (u *endingUpstream) call(run *Run) (status int) {
	ctx, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	ctx = context.WithValue(ctx, hangUpKey{}, hangUp)
	path := u.path
	if u.wire == WireBedrock {
		path = "/" + run.Token() + path
	}
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(u.request()))
	req.Header.Set("X-Api-Key", run.Token())
	w := httptest.NewRecorder()
	run.ServeHTTP(w, req)
	return w.Code
}

// Whatever ends a call, at whichever byte: what the model had read and written until then is charged, and no
// more than the longest answer.
func TestUsage_EveryEndOfACallIsCharged(t *testing.T) {
	for name, form := range endingCalls() {
		for _, way := range endings {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for at := range len(form.body) + 1 {
						u := &endingUpstream{endingCall: form, next: func() (int, string) { return at, way }}
						tracker := guard.NewTracker(guard.Budget{})
						run, err := New(nil).Open(RunOptions{Upstream: u, Trackers: []*guard.Tracker{tracker}})
						if err != nil {
							t.Fatal(err)
						}
						u.run = run
						u.call(run)
						u.closing.Wait()
						got, truth := tracker.Consumed().TotalTokens(), u.written.Load()
						most := tokensIn(len(u.request()), inputBytes) + int64(u.total-u.input)
						if got < truth || got > most {
							t.Errorf("ended at byte %d of %d: %d tokens are charged, want at least %d and at most %d", at, len(form.body), got, truth, most)
						}
						if usage := run.Usage(); usage.Total.AllInput()+usage.Total.Output != got {
							t.Errorf("ended at byte %d: the run counts %+v, the tracker %d", at, usage.Total, got)
						}
						if way == endByAgent && at < len(form.body) && got != truth {
							t.Errorf("ended at byte %d: %d tokens are charged for an answer of %d that was read on", at, got, truth)
						}
						run.Close()
					}
				})
			})
		}
	}
}

// However calls are ended, less is consumed than the limit and one answer for each that may be in flight.
func TestBudget_HoldsForEveryEndOfACall(t *testing.T) {
	forms := endingCalls()
	rapid.Check(t, func(rt *rapid.T) {
		form := forms[rapid.SampledFrom([]string{"server-sent events", "frames of AWS", "JSON", "JSON of Bedrock"}).Draw(rt, "form")]
		limit := int64(rapid.IntRange(1, 1000).Draw(rt, "limit"))
		inFlight := rapid.IntRange(1, 4).Draw(rt, "in flight")
		alive := []string{endByAgent, endByAgentSilent, endByReset, endByEOF, endByNoHead, endByWaitingHead}
		ways := rapid.SliceOfN(rapid.SampledFrom(alive), 1, 8).Draw(rt, "endings")
		bytes := rapid.SliceOfN(rapid.IntRange(0, len(form.body)), 1, 8).Draw(rt, "bytes")
		var n atomic.Int64
		u := &endingUpstream{endingCall: form, next: func() (int, string) {
			k := int(n.Add(1))
			return bytes[k%len(bytes)], ways[k%len(ways)]
		}}
		var stopped error
		synctest.Test(t, func(t *testing.T) { stopped = u.spend(t, limit, inFlight) })
		if got, most := u.written.Load(), limit+int64(inFlight*form.total); got >= most {
			rt.Errorf("%d tokens were consumed, want less than %d", got, most)
		}
		if !errors.Is(stopped, guard.ErrBudgetExhausted) {
			rt.Errorf("the run was ended by %v", stopped)
		}
	})
}

// spend makes calls until the limit is reached, more at once than may be in flight.
func (u *endingUpstream) spend(t *testing.T, limit int64, inFlight int) error {
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: limit})
	run, err := New(&Options{MaxInFlight: inFlight}).Open(RunOptions{Upstream: u, Trackers: []*guard.Tracker{tracker}})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var wg sync.WaitGroup
	for range inFlight + 2 {
		wg.Go(func() {
			for range 200 {
				if u.call(run) == http.StatusPaymentRequired {
					return
				}
			}
		})
	}
	wg.Wait()
	return run.Stopped()
}
