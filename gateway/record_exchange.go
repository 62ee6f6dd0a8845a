// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/spill"
)

const (
	// captureMemory is what an answer under way takes in memory; the rest of it waits on disk.
	captureMemory = 1 << 20
	// maxAnswer is how much of an answer is recorded.
	maxAnswer = 256 << 20
)

// A recording is one exchange while it is under way.
type recording struct {
	recorder *Recorder
	seq      int
	began    time.Time
	request  *http.Request
	body     []byte
}

func (rec *recording) ms() int64 { return time.Since(rec.began).Milliseconds() }

// end writes an exchange that got no answer, or hands one over that did.
func (rec *recording) end(ms int64, answer *capture, failure error) {
	rec.recorder.beside(func() {
		response := recordedResponse{MS: ms}
		if answer != nil {
			response = answer.recorded()
		}
		if failure != nil {
			response.Error = failure.Error()
		}
		e := exchange{
			Seq: rec.seq, AtMS: rec.began.Sub(rec.recorder.started).Milliseconds(),
			Request: recordedRequest{
				Method: rec.request.Method, Path: rec.request.URL.EscapedPath(), Query: rec.request.URL.RawQuery,
				Headers: pickHeaders(rec.request.Header, requestHeaders, rec.recorder.Wire().Replay.RequestHeaders), Body: newPayload(rec.body),
			},
			Response: response,
		}
		_ = rec.recorder.writeLine(rec.recorder.mask.exchange(e)) // Close reports it
	})
}

// capture puts itself between the answer and its reader.
func (rec *recording) capture(resp *http.Response) io.ReadCloser {
	return &capture{
		rec: rec, body: resp.Body, length: resp.ContentLength, headerMS: rec.ms(),
		status: resp.StatusCode, headers: pickHeaders(resp.Header, responseHeaders, rec.recorder.Wire().Replay.ResponseHeaders),
		encoding: resp.Header.Get("Content-Encoding"),
		chunks:   spill.New(spill.Options{Memory: captureMemory}),
	}
}

// A capture is the body of an answer that keeps what is read from it.
type capture struct {
	rec      *recording
	body     io.ReadCloser
	length   int64 // as announced; negative if it was not
	headerMS int64
	status   int
	headers  map[string]string
	encoding string

	mu     sync.Mutex
	chunks *spill.Queue
	size   int64
	lost   string // why the record is not complete
	cut    bool
	ended  bool
}

// Read passes on what the upstream gives.
func (c *capture) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	c.keep(p[:n])
	switch {
	case errors.Is(err, io.EOF):
		c.end(true, nil)
	case err != nil:
		c.end(false, err)
	}
	return n, err
}

// Close ends the exchange.
func (c *capture) Close() error {
	err := c.body.Close()
	c.end(false, nil)
	return err
}

func (c *capture) keep(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += int64(len(p))
	if len(p) == 0 || c.ended || c.lost != "" {
		return
	}
	if c.size > maxAnswer {
		c.lost = fmt.Sprintf("what comes after the first %d bytes", c.size-int64(len(p)))
		return
	}
	if err := c.chunks.Push(spill.Item{Data: append([]byte(nil), p...), Tag: uint64(c.rec.ms())}); err != nil {
		c.lost = "the rest: " + err.Error()
	}
}

// end hands the exchange over to be written, once. An incomplete answer without a failure was cut by its reader.
func (c *capture) end(complete bool, failure error) {
	c.mu.Lock()
	was := c.ended
	c.ended = true
	if !was && !complete && c.size != c.length {
		gone := context.Cause(c.rec.request.Context())
		c.cut = failure == nil || gone != nil
	}
	c.mu.Unlock()
	if !was {
		c.chunks.Close(nil)
		c.rec.end(c.headerMS, c, failure)
	}
}

func (c *capture) recorded() recordedResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := recordedResponse{MS: c.headerMS, Status: c.status, Headers: c.headers, Cut: c.cut, Lost: c.lost}
	defer c.chunks.Discard()
	if c.encoding != "" && c.encoding != "identity" {
		r.Lost = "the answer, because it came encoded as " + c.encoding
		return r
	}
	for {
		item, err := c.chunks.Pop(context.Background())
		if errors.Is(err, io.EOF) {
			return r
		}
		if err != nil {
			r.Lost = "the rest: " + err.Error()
			return r
		}
		r.Chunks = append(r.Chunks, newChunk(int64(item.Tag), item.Data))
	}
}
