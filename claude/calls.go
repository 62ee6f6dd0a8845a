// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A callTable holds our requests that the CLI has not answered yet.
type callTable struct {
	mu      sync.Mutex
	next    int
	waiting map[string]waitingCall
	err     error // set when no answer can come any more
}

type waitingCall struct {
	subtype string
	result  chan callResult
}

type callResult struct {
	reply controlReply
	err   error
}

// controlReply is the inner part of a control_response.
type controlReply struct {
	Subtype   string          `json:"subtype"`
	Response  json.RawMessage `json:"response"`
	Error     string          `json:"error"`
	ErrorCode string          `json:"error_code"`

	raw json.RawMessage // all of it
}

func (t *callTable) add(subtype string) (id string, result <-chan callResult, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return "", nil, t.err
	}
	t.next++
	id = fmt.Sprintf("req_%d", t.next)
	if t.waiting == nil {
		t.waiting = map[string]waitingCall{}
	}
	ch := make(chan callResult, 1)
	t.waiting[id] = waitingCall{subtype, ch}
	return id, ch, nil
}

func (t *callTable) take(id string) (waitingCall, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	call, ok := t.waiting[id]
	delete(t.waiting, id)
	return call, ok
}

func (w waitingCall) answer(head lineHead) {
	reply := controlReply{raw: head.body}
	err := json.Unmarshal(head.body, &reply)
	w.result <- callResult{reply, err}
}

func (t *callTable) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	for id, call := range t.waiting {
		call.result <- callResult{err: err}
		delete(t.waiting, id)
	}
}

// response takes a control_response. An unknown id is the late answer to a request that was given
// up. The end of the handshake is noted here, in the order of the lines: the CLI may end right after it.
func (c *conn) response(head lineHead) {
	call, ok := c.calls.take(head.requestID)
	if !ok {
		return
	}
	if call.subtype == "initialize" && head.bodySubtype == "success" {
		c.setReady()
	}
	call.answer(head)
}

// defaultCallTimeout limits a request whose context has no deadline.
const defaultCallTimeout = 60 * time.Second

// unlimited are requests that last as long as the work they ask for.
var unlimited = map[string]bool{"mcp_call": true, "side_question": true}

func (c *conn) call(ctx context.Context, subtype string, fields any, limit time.Duration) (controlReply, error) {
	request, err := withSubtype(subtype, fields)
	if err != nil {
		return controlReply{}, err
	}
	id, result, err := c.calls.add(subtype)
	if err != nil {
		return controlReply{}, err
	}
	ctx, cancel := limited(ctx, subtype, limit)
	defer cancel()
	if err := c.out.send(ctx, requestLine(id, request), nil); err != nil {
		c.calls.take(id)
		return controlReply{}, c.callError(subtype, limit, err)
	}
	select {
	case r := <-result:
		return r.reply, c.replyError(subtype, r)
	case <-ctx.Done():
		if _, waiting := c.calls.take(id); waiting {
			c.out.post([]byte(`{"type":"control_cancel_request","request_id":"` + id + `"}`))
		}
		return controlReply{}, c.callError(subtype, limit, context.Cause(ctx))
	}
}

var errCallTimeout = errors.New("claude: no answer in time")

func limited(ctx context.Context, subtype string, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has || limit <= 0 || unlimited[subtype] {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, errCallTimeout)
}

// callError prefers the reason why the connection ended to the broken pipe that it caused.
func (c *conn) callError(subtype string, limit time.Duration, err error) error {
	if errors.Is(err, errCallTimeout) {
		return &ControlTimeoutError{Subtype: subtype, After: limit}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("claude: %s: %w", subtype, err)
	}
	return c.endError(err)
}

func (c *conn) replyError(subtype string, r callResult) error {
	switch {
	case r.err != nil:
		return r.err
	case r.reply.Subtype == "error":
		return &ControlError{Subtype: subtype, Code: r.reply.ErrorCode, Message: r.reply.Error, secrets: c.secrets}
	}
	return nil
}

// withSubtype is fields, which must encode as an object or be nil, with the subtype put in front.
func withSubtype(subtype string, fields any) (json.RawMessage, error) {
	name, err := json.Marshal(subtype)
	if err != nil {
		return nil, err
	}
	body := []byte("{}")
	if fields != nil {
		if body, err = json.Marshal(fields); err != nil {
			return nil, fmt.Errorf("claude: encoding %s: %w", subtype, err)
		}
	}
	if len(body) < 2 || body[0] != '{' {
		return nil, fmt.Errorf("claude: the fields of %s are not an object: %.40s", subtype, body)
	}
	out := append([]byte(`{"subtype":`), name...)
	if string(body) != "{}" {
		out = append(append(out, ','), body[1:len(body)-1]...)
	}
	return append(out, '}'), nil
}

func requestLine(id string, request json.RawMessage) []byte {
	line := append([]byte(`{"type":"control_request","request_id":"`), id...)
	line = append(append(line, `","request":`...), request...)
	return append(line, '}')
}
