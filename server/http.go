// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainjson"
)

// A Problem is the body of each refusal and failure, as RFC 9457 has it.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is what failed, on what and why.
	Detail string `json:"detail"`
	// Next is what to do about it.
	Next string `json:"next,omitzero"`

	retry time.Duration // when to try again, for the header Retry-After
}

func (p *Problem) Error() string { return p.Detail }

// Advice implements [advice.Adviser].
func (p *Problem) Advice() string { return p.Next }

func problem(status int, detail, next string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Next: next}
}

// problemOf is what a client is told of an error.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", large.Limit), "send a smaller one")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return problem(http.StatusRequestTimeout, "the body did not come in time", "send it faster")
	}
	status := http.StatusInternalServerError
	if errors.Is(err, fs.ErrNotExist) {
		status = http.StatusNotFound
	}
	return problem(status, err.Error(), advice.Of(err))
}

// serving makes a handler of a function whose error becomes a problem document.
func serving(f func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := f(w, r)
		if err == nil || r.Context().Err() != nil && errors.Is(err, context.Canceled) {
			return
		}
		writeProblem(w, problemOf(err))
	}
}

func writeProblem(w http.ResponseWriter, p *Problem) {
	text, err := plainjson.Marshal(p)
	if err != nil {
		panic(err) // it has texts and a number
	}
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retry.Seconds()))))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(text) // no client is left
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	text, err := plainjson.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // no client is left
	return nil
}

// readWithin calls read, which reads a body, and bounds its time. A body that is not read to its end keeps the time: net/http reads the rest of it.
func readWithin(w http.ResponseWriter, limit time.Duration, read func() error) error {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(limit)) // here and below: without deadlines, as in a test, nothing is slow
	if err := read(); err != nil {
		return bodyError(err)
	}
	_ = c.SetReadDeadline(time.Time{}) // the rest may take longer
	return nil
}

// readJSON reads a body of one JSON value that has no other fields than v. An empty body leaves v as it is.
func readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	var text []byte
	err := readWithin(w, bodyTime, func() (err error) {
		text, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		return err
	})
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return problem(http.StatusUnsupportedMediaType, "the body is not declared as JSON", "send the header Content-Type: application/json")
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(v); err != nil {
		return problem(http.StatusBadRequest, "the body cannot be read: "+err.Error(), "send one JSON object; GET /v1/openapi.json describes it")
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return problem(http.StatusBadRequest, "the body has more than one JSON value", "send one JSON object")
	}
	return nil
}

// bodyError is what a client is told whose body ended early.
func bodyError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return problem(http.StatusBadRequest, "the body is shorter than was declared, or is not whole", "send it again")
	}
	return err
}

// A stream sends server-sent events. A client that does not read for slowClient loses its connection; it returns with the last id.
type stream struct {
	w       io.Writer
	control *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	own := patient(w)
	return &stream{own, own.control}
}

// send writes an event. Its data has no line breaks.
func (s *stream) send(name, id string, data []byte) error { return s.write(sseText(name, id, data)) }

func (s *stream) write(text []byte) error {
	_, err := s.w.Write(text)
	return err
}

// sseText is a server-sent event as it is sent.
func sseText(name, id string, data []byte) []byte {
	text := make([]byte, 0, len(name)+len(id)+len(data)+32)
	if id != "" {
		text = append(append(append(text, "id: "...), id...), '\n')
	}
	text = append(append(append(text, "event: "...), name...), "\ndata: "...)
	return append(append(text, data...), "\n\n"...)
}

func (s *stream) beat() error {
	if _, err := io.WriteString(s.w, ": beat\n\n"); err != nil {
		return err
	}
	return s.flush()
}

func (s *stream) flush() error { return s.control.Flush() }
