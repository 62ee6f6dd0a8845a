// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

type cliRequest struct {
	ID      string
	Subtype string
	Body    json.RawMessage // the whole inner object
}

type cliAnswer struct {
	response json.RawMessage
	err      string
	code     string
	silent   bool // no answer may be sent
}

// A service is a request of the CLI on its way to an answer.
type service struct {
	// run makes the answer. It may block.
	run func() cliAnswer
	// safe gives the answer if run does not return: it panicked, or a callback ended its goroutine.
	safe func() cliAnswer
	// sent, if set, is called when the answer is queued for the CLI, ahead of all later ones.
	sent func()
}

// A handlerTable holds the requests of the CLI that are being answered.
type handlerTable struct {
	ctx  context.Context // the parent of all handlers' contexts
	stop context.CancelFunc

	mu      sync.Mutex
	running map[string]*handling
	wg      sync.WaitGroup // of handlers, and of goroutines that wait for the next one

	next chan func()  // taken by a goroutine that waits
	idle atomic.Int32 // how many wait
}

func newHandlerTable() *handlerTable {
	t := &handlerTable{next: make(chan func())}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// maxIdle is how many goroutines are kept for the next requests.
const maxIdle = 16

// start runs a handler on a goroutine of its own, an idle one if possible: a fresh goroutine spends more time on growing its
// stack than most hooks on their answer. It is called between begin and the end of the handler.
func (t *handlerTable) start(handler func()) {
	select {
	case t.next <- handler:
	default:
		t.wg.Add(1)
		go t.work(handler)
	}
}

func (t *handlerTable) work(handler func()) {
	defer t.wg.Done()
	for {
		handler()
		if t.idle.Add(1) > maxIdle {
			t.idle.Add(-1)
			return
		}
		select {
		case handler = <-t.next:
			t.idle.Add(-1)
		case <-t.ctx.Done():
			return
		}
	}
}

// A handling is one request being answered. Its address distinguishes it from a later request with the same id.
type handling struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// begin registers a request. It reports false for one that is being answered already: the CLI may deliver a request twice.
func (t *handlerTable) begin(id string) (*handling, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, twice := t.running[id]; twice || t.ctx.Err() != nil {
		return nil, false
	}
	h := &handling{}
	h.ctx, h.cancel = context.WithCancel(t.ctx)
	if t.running == nil {
		t.running = map[string]*handling{}
	}
	t.running[id] = h
	t.wg.Add(1)
	return h, true
}

// finish reports whether the request still wants its answer: one that was cancelled does not.
func (t *handlerTable) finish(id string, h *handling) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.cancel()
	wanted := t.running[id] == h
	if wanted {
		delete(t.running, id)
	}
	return wanted
}

// cancel ends the context of a request's handler; the request gets no answer. Unknown ids are
// requests that were answered while the cancellation was on its way.
func (t *handlerTable) cancel(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h, running := t.running[id]; running {
		h.cancel()
		delete(t.running, id)
	}
}

func (t *handlerTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
	clear(t.running)
}

// wait waits for the handlers to return, for at most limit, and reports whether all did.
func (t *handlerTable) wait(limit time.Duration) bool {
	done := make(chan struct{})
	go func() {
		t.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// request answers a request of the CLI on its own goroutine. It calls prepare itself, for work in the order of the lines.
func (c *conn) request(head lineHead) {
	r := cliRequest{ID: head.requestID, Subtype: head.bodySubtype, Body: head.body}
	h, ok := c.asked.begin(r.ID)
	if !ok {
		return
	}
	s := c.prepare(h.ctx, r)
	c.asked.start(func() { c.handle(r, h, s) })
}

// handle answers a request, even if a callback ends the goroutine, as a test's FailNow does: the CLI would wait forever.
func (c *conn) handle(r cliRequest, h *handling, s service) {
	defer c.asked.wg.Done()
	var a cliAnswer
	returned := false
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("claude: answering a request panicked", "subtype", r.Subtype, "panic", p, "stack", string(debug.Stack()))
		}
		if !returned {
			a = s.safe()
		}
		if wanted := c.asked.finish(r.ID, h); wanted && !a.silent {
			c.out.post(responseLine(r.ID, a))
			if s.sent != nil {
				s.sent()
			}
		}
	}()
	a = s.run()
	returned = true
}

func responseLine(id string, a cliAnswer) []byte {
	quoted, _ := json.Marshal(id) // a string always encodes
	if a.err != "" {
		return errorLine(quoted, a)
	}
	line := make([]byte, 0, len(quoted)+len(a.response)+96)
	line = append(line, `{"type":"control_response","response":{"subtype":"success","request_id":`...)
	line = append(append(line, quoted...), `,"response":`...)
	if len(a.response) == 0 {
		line = append(line, "{}"...)
	}
	return append(append(line, a.response...), "}}"...)
}

func errorLine(id []byte, a cliAnswer) []byte {
	body := map[string]any{"subtype": "error", "request_id": json.RawMessage(id), "error": a.err}
	if a.code != "" {
		body["error_code"] = a.code
	}
	line, _ := json.Marshal(map[string]any{"type": "control_response", "response": body}) // strings always encode
	return line
}
