// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
)

// maxBody bounds what an agent may send in one request; the API itself takes half of it.
const maxBody = 64 << 20

// A call is one request of the agent on its way.
type call struct {
	run    *Run
	w      http.ResponseWriter
	client context.Context // ends when the agent has gone
	header http.Header     // for the upstream
	method string
	query  string
	body   []byte
	route  Route

	model, agent string
	asked        Ask
	result       string // a tool's result that the call brings, by its id
	streamed     bool   // was asked for
	began        time.Time
	attempts     int
	firstByte    time.Duration
	status       int
	// upstreamStatus is the status of the upstream's answer, zero without an answer.
	upstreamStatus int
	retryAfter     time.Duration
	problem        string // what went wrong, for the event
	counted        tally  // what is recorded already
	holds          bool   // a slot of the lane
	owed           bool   // the upstream has the request and has not refused it: it may be charged for
	headAt         time.Time
	unread         bool // the agent went before it had the whole answer
	estimated      bool // the answer did not report its cost

	answer
}

func (r *Run) serve(w http.ResponseWriter, req *http.Request) {
	if r.wire.Hello != nil {
		if reply := r.wire.Hello(req.Method, req.URL.Path); reply != nil {
			reply.write(w, http.StatusOK)
			return
		}
	}
	up := &upload{run: r, from: http.MaxBytesReader(w, req.Body, maxBody)}
	defer up.release()
	c, refusal := r.admit(w, req, up)
	if refusal != nil {
		r.refuse(w, req, refusal)
		return
	}
	if r.warmUps.Load() > 0 {
		r.wire.WarmUpAnswer(c.route, c.streamed).write(w, http.StatusOK)
		return
	}
	if err := r.spent(); err != nil {
		c.answerStopped(err)
		return
	}
	if err := cmp.Or(c.inspect(), c.takeTurn()); err != nil {
		r.Stop(err)
		c.answerStopped(r.Stopped())
		return
	}
	c.do()
}

func (r *Run) admit(w http.ResponseWriter, req *http.Request, up *upload) (*call, *refusal) {
	path, ok := r.wire.Authorize(req, r.isToken)
	if !ok {
		return nil, &refusal{path: path, reason: textToken}
	}
	route, ok := r.wire.Route(req.Method, path)
	if !ok {
		return nil, &refusal{path: path, reason: textRoute}
	}
	body, err := up.read(req.ContentLength)
	if err != nil {
		return nil, bodyRefusal(path, err)
	}
	c := &call{
		run: r, w: w, client: req.Context(), header: passed(req.Header), method: req.Method, query: req.URL.RawQuery,
		body: body, route: route, model: route.Model, agent: r.agentOf(req), began: time.Now(),
	}
	c.header.Set("Accept-Encoding", "identity")
	if refusal := c.examine(); refusal != nil {
		return nil, refusal
	}
	return c, nil
}

func (r *Run) agentOf(req *http.Request) string {
	if r.wire.AgentHeader == "" {
		return MainAgent
	}
	return cmp.Or(clip(req.Header.Get(r.wire.AgentHeader)), MainAgent)
}

func bodyRefusal(path string, err error) *refusal {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &refusal{
			path: path, status: http.StatusRequestEntityTooLarge,
			reason: fmt.Sprintf(textLarge, maxBody),
		}
	}
	if errors.Is(err, errTooMuchHeld) {
		return &refusal{path: path, status: http.StatusTooManyRequests, reason: advice.Text(err)}
	}
	return &refusal{path: path, status: http.StatusBadRequest, reason: textIncomplete}
}

// examine reads the body of the call, and compares the model with those that may be asked for.
func (c *call) examine() *refusal {
	if c.method == http.MethodGet && !c.route.Metered {
		return nil // a question about the models, without a body
	}
	asked, err := c.run.wire.ReadRequest(c.header, c.body)
	if err != nil {
		return &refusal{path: c.route.Path, status: http.StatusBadRequest, reason: advice.Text(err)}
	}
	c.model = cmp.Or(c.model, asked.Model)
	c.streamed = asked.Stream || c.route.Streams
	if !c.run.allowed(c.model) {
		return &refusal{path: c.route.Path, model: c.model, reason: fmt.Sprintf(textModel, clip(c.model))}
	}
	c.model = c.run.wire.canonical(clip(c.model)) // clipped only now: what is allowed is the whole name
	c.asked = asked.Ask
	c.asked.Model, c.asked.Agent = c.model, c.agent
	c.result = clip(asked.Result)
	if err := cmp.Or(c.run.checkRemote(&asked), c.run.checkPrice(&asked)); err != nil {
		return &refusal{path: c.route.Path, model: c.model, reason: advice.Text(err)}
	}
	if !c.run.affordable(c.model) {
		return &refusal{path: c.route.Path, model: c.model, reason: fmt.Sprintf(textUnpriced, c.model)}
	}
	for _, model := range asked.Fallbacks {
		if !c.run.allowed(model) || !c.run.affordable(c.run.wire.canonical(model)) {
			return &refusal{path: c.route.Path, model: c.model, reason: fmt.Sprintf(textFallback, model)}
		}
	}
	return nil
}

func (c *call) do() {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.client))
	defer cancel(nil)
	c.answer.cancel = func() { cancel(errCut) }
	unwatch := context.AfterFunc(c.run.over, c.cut)
	unlisten := context.AfterFunc(c.client, c.leave)
	unlive := context.AfterFunc(c.run.life, c.answer.cancel)
	defer func() {
		unwatch()
		unlisten()
		unlive()
		c.retire()
	}()

	defer func() { // when all is counted: the next call may find the budget spent
		if c.holds {
			c.run.lane.release(c.run)
		}
	}()
	var broken bool
	if resp, err := c.send(ctx); err != nil {
		broken = c.failed(err)
	} else {
		broken = c.pass(resp)
	}
	c.report()
	if broken && c.client.Value(http.ServerContextKey) != nil {
		panic(http.ErrAbortHandler) // the agent must see that its answer broke off
	}
}

var errAgentGone = errors.New("gateway: " + problemGone)

var errCut = errors.New("gateway: the run is over")

// send waits for its turn and asks the upstream, again if that is overloaded. It has a slot of the lane then.
func (c *call) send(ctx context.Context) (*http.Response, error) {
	lane, patience := c.run.lane, c.run.gateway.maxWait
	for {
		var err error
		if patience, err = lane.acquire(ctx, c.run, patience); err != nil {
			return nil, err
		}
		c.holds = true
		resp, err := c.attempt(ctx)
		if err != nil {
			return nil, err
		}
		if !c.run.wire.tooBusy(resp) || !c.route.Metered { // what costs nothing has limits of its own, and delays no other call
			return resp, nil
		}
		wait := backOff(resp.Header, c.attempts)
		if wait > c.run.gateway.maxWait {
			return resp, nil
		}
		lane.hold(c.run, wait)
		c.run.emitBackOff(resp.StatusCode, c.attempts, wait)
		if wait > patience {
			return resp, nil
		}
		discard(resp)
		c.holds = false
		lane.release(c.run)
		c.wait()
	}
}

// attempt sends the call once. The first attempt counts as a request.
func (c *call) attempt(ctx context.Context) (*http.Response, error) {
	ask := c.run.begin
	if c.attempts > 0 || !c.route.Metered {
		ask = c.run.spent
	}
	if err := ask(); err != nil {
		return nil, err
	}
	if !c.depart() {
		return nil, errAgentGone
	}
	c.attempts++
	resp, err := c.run.o.Upstream.RoundTrip(c.request(ctx))
	if err == nil || !unsent(err) {
		c.run.reached.Store(true)
	}
	c.owed = err == nil && resp.StatusCode/100 == 2 || err != nil && !unsent(err)
	return resp, err
}

func (c *call) request(ctx context.Context) *http.Request {
	path, err := url.PathUnescape(c.route.Path)
	if err != nil {
		path = c.route.Path // it was one that net/http has parsed
	}
	var body io.ReadCloser = http.NoBody
	if c.method != http.MethodGet {
		body = io.NopCloser(bytes.NewReader(c.body))
	}
	req := &http.Request{
		Method: c.method, URL: &url.URL{Path: path, RawPath: c.route.Path, RawQuery: c.query},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: c.header.Clone(), Body: body,
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil },
	}
	if c.method != http.MethodGet {
		req.ContentLength = int64(len(c.body))
	}
	return req.WithContext(ctx)
}

func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	_ = resp.Body.Close()
}

// The errors in the event of an incomplete call.
const (
	problemGone    = "the agent has gone"
	problemStopped = "the run was stopped"
)

// failed answers a call that has no answer. It reports whether the call breaks off: silence would look like empty success.
func (c *call) failed(err error) (broken bool) {
	if stopped := c.run.Stopped(); stopped != nil {
		c.problem = problemStopped
		c.answerStopped(stopped)
		return false
	}
	if c.client.Err() != nil || c.run.life.Err() != nil {
		c.problem, c.unread = problemGone, true
		return true
	}
	c.problem = c.run.redactor.String(unreachable(err))
	c.run.gateway.logger.Warn("gateway: a model call failed", "run", c.run.o.RunID, "upstream", c.run.o.Upstream.Name(), "error", c.problem)
	c.status = http.StatusBadGateway
	if !c.run.reached.Load() { // the address, the name or the certificate is wrong rather than the network slow
		c.run.wire.forbidRetry(c.w.Header())
	}
	c.run.wire.Error(c.status, "the gateway cannot reach "+c.run.o.Upstream.Name()+": "+c.problem).write(c.w, c.status)
	return false
}

func (c *call) answerStopped(err error) {
	c.status = http.StatusPaymentRequired
	c.run.wire.writeError(c.w, c.status, firstLine(err))
}

// An answer is the state that the reader of an upstream shares with the goroutine that ends the run.
type answer struct {
	cancel func()
	out    *http.ResponseController

	mu      sync.Mutex
	meter   Meter       // nil until the answer begins
	stream  *Stream     // nil for an answer that is not streamed
	clean   bool        // what was passed on ends with a whole event
	retired bool        // the call is over
	hurried bool        // the run is over: the reader has little time
	sent    bool        // the request is with the upstream
	gone    bool        // the agent has gone; the answer is read on for its usage
	readOn  int         // bytes that came since then
	late    *time.Timer // ends an answer that does not come to its end
}
