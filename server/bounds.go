// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

// The bounds of a server. What is beyond one is refused with a problem document, or loses its connection if it does not read.
const (
	maxConnections = 512 // further ones wait to be accepted
	maxStreams     = 256
	maxTarget      = 8 << 10  // bytes of a path with its query
	maxHeader      = 32 << 10 // bytes of all fields
	maxBody        = 4 << 20  // of a request in JSON
	maxExports     = 4        // bundles that are made at a time
	headerTime     = 10 * time.Second
	bodyTime       = 30 * time.Second
	slowClient     = 30 * time.Second // without reading anything
	idleTime       = 2 * time.Minute
)

// maxRates bound the requests in a second, and at once, by who makes them: one who is unknown does not keep the owner from working.
var maxRates = [...]struct{ second, burst int }{anyone: {100, 400}, viewer: {100, 400}, owner: {200, 1000}}

func limiters() (all [len(maxRates)]*rate.Limiter) {
	for i, r := range maxRates {
		all[i] = rate.NewLimiter(rate.Limit(r.second), r.burst)
	}
	return all
}

var errTooManyRequests = tooMany("there are too many requests", "send fewer, and wait for as long as Retry-After says", time.Second)

// tooMany refuses a request for now.
func tooMany(detail, next string, retry time.Duration) *Problem {
	p := problem(http.StatusTooManyRequests, detail, next)
	p.retry = retry
	return p
}

// checkSize refuses what net/http would refuse without a problem document, a little earlier.
func checkSize(r *http.Request) error {
	if len(r.RequestURI) > maxTarget {
		return problem(http.StatusRequestURITooLong, fmt.Sprintf("the address has more than %d bytes", maxTarget), "send a shorter one")
	}
	size := len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	if size > maxHeader {
		return problem(http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("the header has more than %d bytes", maxHeader), "send fewer and shorter fields")
	}
	return nil
}

// A slots has room for so many at a time.
type slots chan struct{}

// take reports whether there was room. leave gives it back.
func (s slots) take() (leave func(), ok bool) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, true
	default:
		return nil, false
	}
}

// A patientWriter gives the client slowClient to read each part of an answer.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func patient(w http.ResponseWriter) patientWriter {
	return patientWriter{w, http.NewResponseController(w)}
}

func (w patientWriter) extend() {
	_ = w.control.SetWriteDeadline(time.Now().Add(slowClient)) // without deadlines, as in a test, nothing is slow
}

func (w patientWriter) WriteHeader(status int) {
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Write writes parts, so that the time is for each of them.
func (w patientWriter) Write(text []byte) (n int, err error) {
	const part = 64 << 10
	for {
		w.extend()
		m, err := w.ResponseWriter.Write(text[n:min(n+part, len(text))])
		n += m
		if err != nil || n == len(text) {
			return n, err
		}
	}
}

func (w patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
