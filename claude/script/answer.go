// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"net"
	"net/http"
)

// An answer is a turn on its way to the client.
type answer struct {
	w         http.ResponseWriter
	ctx       context.Context
	turn      Turn
	request   *Request
	id        string // of the HTTP request
	messageID string
}

type wireMessage struct {
	ID           string    `json:"id"`
	Type         string    `json:"type"`
	Role         string    `json:"role"`
	Model        string    `json:"model"`
	Content      []any     `json:"content"`
	StopReason   *string   `json:"stop_reason"`
	StopSequence *string   `json:"stop_sequence"`
	Usage        wireUsage `json:"usage"`
}

type wireUsage struct {
	Input         int `json:"input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	Output        int `json:"output_tokens"`
}

func (a *answer) send() {
	if !pause(a.ctx, a.turn.Delay) {
		abort()
	}
	for name, value := range a.turn.Headers {
		a.w.Header().Set(name, value)
	}
	fault := a.turn.Fault
	switch {
	case a.turn.Error != nil:
		writeError(a.w, a.id, *a.turn.Error)
	case fault != nil && fault.After < 0 && (fault.Kind == FaultReset || fault.Kind == FaultHang):
		a.breakOff()
	case a.request.Stream:
		a.stream()
	default:
		a.whole()
	}
}

func (a *answer) whole() {
	body := mustJSON(a.message())
	fault := a.turn.Fault
	if fault == nil {
		writeJSON(a.w, http.StatusOK, body)
		return
	}
	if fault.Kind == FaultErrorEvent {
		writeError(a.w, a.id, fault.apiError())
		return
	}
	sent := len(body) / 2
	if fault.After < 0 {
		sent = 0
	}
	writeJSON(a.w, http.StatusOK, body[:sent])
	a.flush()
	if fault.Kind == FaultReset || fault.Kind == FaultHang {
		a.breakOff()
	}
}

func (a *answer) message() wireMessage {
	m := a.openingMessage()
	for _, b := range a.turn.Content {
		m.Content = append(m.Content, b.wire())
	}
	reason := a.turn.stopReason()
	m.StopReason, m.StopSequence = &reason, a.stopSequence()
	m.Usage.Output = a.turn.usage().Output
	return m
}

// openingMessage is the message as message_start has it: no content, one output token.
func (a *answer) openingMessage() wireMessage {
	u := a.turn.usage()
	model := a.turn.Model
	if model == "" {
		model = a.request.Model
	}
	return wireMessage{
		ID: a.messageID, Type: "message", Role: "assistant", Model: model, Content: []any{},
		Usage: wireUsage{Input: u.Input, CacheCreation: u.CacheCreation, CacheRead: u.CacheRead, Output: min(u.Output, 1)},
	}
}

func (a *answer) stopSequence() *string {
	if a.turn.StopSequence == "" {
		return nil
	}
	return &a.turn.StopSequence
}

func (a *answer) flush() {
	// A writer that cannot flush sends everything at the end.
	_ = http.NewResponseController(a.w).Flush()
}

// breakOff ends an answer without its end: by a reset, or by waiting for the client to leave.
func (a *answer) breakOff() {
	if a.turn.Fault.Kind == FaultReset {
		a.reset()
		return
	}
	<-a.ctx.Done()
	abort()
}

// reset makes the kernel send RST instead of FIN: closing with a linger time of zero does.
// Over HTTP/2 or a recorder there is no connection to reset, and the handler is aborted instead.
func (a *answer) reset() {
	conn, _, err := http.NewResponseController(a.w).Hijack()
	if err != nil {
		abort()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// abort drops the connection without an entry in the server's log.
func abort() { panic(http.ErrAbortHandler) }
