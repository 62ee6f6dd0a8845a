// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	messagesPath    = "/v1/messages"
	countTokensPath = "/v1/messages/count_tokens"
)

// maxBody is far above what the API itself takes (32 MB).
const maxBody = 64 << 20

// maxFuncs bounds how many times a [Func] may return another one.
const maxFuncs = 8

// ServeHTTP answers POST /v1/messages and POST /v1/messages/count_tokens, and the paths that the CLI
// probes. All other paths get 404. Every request is recorded, see [Model.Traffic]. An answer that is
// broken off panics with [http.ErrAbortHandler], as net/http requires.
func (m *Model) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	id := m.nextID()
	w.Header().Set("Request-Id", id)
	r, err := readRequest(w, hr)
	if err != nil {
		m.record(r)
		refuse(w, id, m.fail(r, http.StatusBadRequest, err.Error()))
		return
	}
	switch {
	case isMessagesCall(hr) && hr.URL.Path == messagesPath:
		m.serveMessage(w, hr, r, id)
	case isMessagesCall(hr):
		m.record(r)
		writeJSON(w, http.StatusOK, mustJSON(map[string]int{"input_tokens": m.countTokens(r)}))
	case isProbe(hr):
		m.record(r)
		writeJSON(w, http.StatusOK, []byte(`{"message":"hello"}`))
	default:
		m.record(r)
		message := fmt.Sprintf("%s %s is not part of the scripted Messages API", hr.Method, hr.URL.Path)
		writeError(w, id, APIError{Status: http.StatusNotFound, Message: message})
	}
}

func isProbe(hr *http.Request) bool {
	if hr.Method != http.MethodGet && hr.Method != http.MethodHead {
		return false
	}
	return hr.URL.Path == "/" || hr.URL.Path == "/api/hello"
}

// readRequest always returns a request that can be recorded, even beside an error.
func readRequest(w http.ResponseWriter, hr *http.Request) (*Request, error) {
	r := Request{Method: hr.Method, Path: hr.URL.Path, Query: hr.URL.RawQuery, Header: hr.Header.Clone()}
	body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxBody))
	r.Body = body
	if err != nil {
		return &r, fmt.Errorf("the body cannot be read: %w", err)
	}
	if !isMessagesCall(hr) {
		return &r, nil
	}
	decoded := r
	if err := json.Unmarshal(body, &decoded); err != nil {
		return &r, fmt.Errorf("the body is not a request of the Messages API: %w", err)
	}
	return &decoded, nil
}

func isMessagesCall(hr *http.Request) bool {
	return hr.Method == http.MethodPost && (hr.URL.Path == messagesPath || hr.URL.Path == countTokensPath)
}

func (m *Model) countTokens(r *Request) int {
	if m.script.CountTokens > 0 {
		return m.script.CountTokens
	}
	return max(len(r.Body)/4, 1)
}

func (m *Model) serveMessage(w http.ResponseWriter, hr *http.Request, r *Request, id string) {
	turn, failure := m.take(r)
	if failure != nil {
		refuse(w, id, failure)
		return
	}
	turn, err := evaluate(turn, r)
	if err != nil {
		refuse(w, id, m.fail(r, http.StatusPaymentRequired, err.Error()))
		return
	}
	a := &answer{
		w: w, ctx: hr.Context(), turn: turn, request: r,
		id: id, messageID: fmt.Sprintf("msg_%s%04d", m.script.IDPrefix, r.Number),
	}
	a.turn.Content = m.identify(turn.Content, r)
	a.send()
}

// evaluate replaces a computed turn by its result.
func evaluate(t Turn, r *Request) (result Turn, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the Func of %s panicked on request %d: %v", r.Turn, r.Number, p)
		}
	}()
	for range maxFuncs {
		if t.Func == nil {
			return t, validateComputed(t, r)
		}
		t = t.Func(r)
	}
	return Turn{}, fmt.Errorf("the Func of %s returns a Func again and again; return an answer", r.Turn)
}

func validateComputed(t Turn, r *Request) error {
	var ps problems
	ps.checkTurn(r.Turn, t)
	if len(ps) > 0 {
		return fmt.Errorf("the Func of %s gave an invalid turn: %s: %w", r.Turn, ps[0].Path, ps[0].Err)
	}
	return nil
}

// identify gives ids to the tool calls that have none, and their present names to tools of scripts of earlier versions.
func (m *Model) identify(blocks []Block, r *Request) []Block {
	out := make([]Block, len(blocks))
	for i, b := range blocks {
		if call, ok := b.(ToolCall); ok {
			if call.ID == "" {
				call.ID = fmt.Sprintf("toolu_%s%04d_%d", m.script.IDPrefix, r.Number, i+1)
			}
			call.Name = r.present(call.Name)
			b = call
		}
		out[i] = b
	}
	return out
}

func refuse(w http.ResponseWriter, id string, f *Failure) {
	kind := "script_error"
	if f.Status == http.StatusBadRequest {
		kind = ""
	}
	writeError(w, id, APIError{Status: f.Status, Type: kind, Message: f.Error()})
}

func writeError(w http.ResponseWriter, id string, e APIError) {
	writeJSON(w, e.Status, mustJSON(e.wire(id)))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// pause waits for d and reports whether the client is still connected.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
