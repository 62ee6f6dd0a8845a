// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/drover-agents/drover/internal/safelog"
)

// newFakeClient returns a client whose requests are answered by f as soon as they are on the wire,
// without a process.
func newFakeClient(f func(ctx context.Context, subtype string, fields any) (json.RawMessage, error)) *Client {
	c := &Client{opts: &Options{}, log: safelog.Logger(nil)}
	c.conn = &conn{log: c.log, done: make(chan struct{})}
	c.conn.out = &lineWriter{w: answeringPipe{c.conn, f}}
	return c
}

// answeringPipe is the input of a CLI that answers each request at once.
type answeringPipe struct {
	conn *conn
	f    func(context.Context, string, any) (json.RawMessage, error)
}

func (p answeringPipe) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		var frame struct {
			RequestID string                     `json:"request_id"`
			Request   map[string]json.RawMessage `json:"request"`
		}
		if err := json.Unmarshal(line, &frame); err != nil {
			return 0, err
		}
		var subtype string
		if err := json.Unmarshal(frame.Request["subtype"], &subtype); err != nil {
			return 0, err
		}
		delete(frame.Request, "subtype")
		p.answer(frame.RequestID, subtype, frame.Request)
	}
	return len(b), nil
}

func (p answeringPipe) answer(id, subtype string, fields map[string]json.RawMessage) {
	var sent any
	if len(fields) > 0 {
		sent = fields
	}
	payload, err := p.f(context.Background(), subtype, sent)
	a := cliAnswer{response: payload}
	var refusal *ControlError
	if errors.As(err, &refusal) {
		a = cliAnswer{err: refusal.Message, code: refusal.Code}
	}
	head, err := peekLine(responseLine(id, a))
	if err != nil {
		panic(err)
	}
	p.conn.response(head)
}

func (answeringPipe) Close() error { return nil }
