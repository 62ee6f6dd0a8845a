// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/safetext"
)

// ReplayOptions configures [Replay]. The zero value is ready to use.
type ReplayOptions struct {
	// Folders are those of the present run. They replace the recorded ones, in what is compared and in what is answered.
	Folders Folders
	// Secrets are those that the recording was made without: see [RecordOptions].
	Secrets []string
	// Wire is that of the recording. Nil means the one of this package that the recording names.
	Wire *Wire
	// Pace keeps the recorded times. The default is as fast as possible.
	Pace bool
}

// A Player is an [Upstream] that answers from a recording, without a network.
//
// A request is answered by the first unused exchange that was recorded for the same request, so that calls of parallel
// agents may come in another order. Requests are the same if they differ only in what is new in each run: ids of sessions,
// agents and tasks, the date, durations, the version of the agent and of the system, the folders, the order in which
// parallel tools ended, the order of tools of MCP servers, and the server of a program's tools, once named wink. A recorded
// call of a tool of wink is one of its present name, unless the request has the old one.
//
// A request that is in the recording no more is refused with status 402, which ends the run, and is a [*MismatchError].
type Player struct {
	path   string
	stored *storedRecording
	opts   ReplayOptions
	mask   masker
	names  []runNames // of each exchange

	mu       sync.Mutex
	left     map[requestKey][]int // by key: exchanges not yet used, as indexes
	last     map[requestKey]int   // by key: the one used last
	used     []bool
	requests int
	err      error
	renamed  map[string]string // ids of the recorded run and what they are in this one
}

// Replay opens a recording that was made by [Record]. The whole file is read at once and closed.
func Replay(path string, opts ReplayOptions) (*Player, error) {
	stored, err := readRecordingFile(path, opts.Wire)
	if err != nil {
		return nil, err
	}
	return newPlayer(path, stored, opts)
}

func newPlayer(path string, stored *storedRecording, opts ReplayOptions) (*Player, error) {
	p := &Player{
		path: path, stored: stored, opts: opts, mask: masker{safetext.NewRedactor(opts.Secrets...), stored.wire},
		left: map[requestKey][]int{}, last: map[requestKey]int{}, used: make([]bool, len(stored.exchanges)), renamed: map[string]string{},
	}
	for i, s := range stored.exchanges {
		n, err := p.recorded(s)
		if err != nil {
			return nil, fmt.Errorf("gateway: replay: %s: exchange %d: %w", path, s.seq, err)
		}
		p.left[n.key] = append(p.left[n.key], i)
		p.names = append(p.names, n.runNames)
	}
	return p, nil
}

// Name is "replay".
func (p *Player) Name() string { return "replay" }

// Wire is the wire of the recorded upstream.
func (p *Player) Wire() *Wire { return p.stored.wire }

// Region is that of the recorded upstream, where it had one.
func (p *Player) Region() string { return p.stored.header.Region }

// Note describes a defect of a usable recording, such as one of a killed run. It is empty for an intact recording.
func (p *Player) Note() string { return p.stored.note }

// Err is the first request that the recording could not answer, a [*MismatchError], or nil.
func (p *Player) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Unused names the exchanges that no request has asked for.
func (p *Player) Unused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var unused []string
	for i, s := range p.stored.exchanges {
		if e, err := s.parse(); err == nil && !p.used[i] {
			unused = append(unused, fmt.Sprintf("exchange %d: %s %s", e.Seq, e.Request.Method, e.Request.Path))
		}
	}
	return unused
}

// RoundTrip answers from the recording.
func (p *Player) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readRequest(req)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	e, ids, err := p.find(req, body)
	if err != nil {
		return p.notRecorded(req, err), nil
	}
	renamed := maps.Clone(p.stored.wire.Replay.Renamed)
	maps.DeleteFunc(renamed, func(former, now string) bool { // the names that this run has
		return bytes.Contains(body, []byte(former)) || !bytes.Contains(body, []byte(now))
	})
	return p.answer(req, e, newRenamer(p.stored.header.Folders, p.opts.Folders, ids, renamed))
}

// find takes the exchange that answers a request, and what its ids are now.
func (p *Player) find(req *http.Request, body []byte) (exchange, map[string]string, error) {
	now := normalise(recordedRequest{
		Method: req.Method, Path: req.URL.EscapedPath(), Query: req.URL.RawQuery,
		Headers: pickHeaders(req.Header, requestHeaders, p.stored.wire.Replay.RequestHeaders), Body: newPayload(body),
	}, p.opts.Folders, p.mask)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	i, ok := p.takeLocked(now.key, req.Method)
	if !ok {
		err := p.mismatchLocked(now)
		if p.err == nil {
			p.err = err
		}
		return exchange{}, nil, err
	}
	e, err := p.stored.exchanges[i].parse()
	if err != nil {
		return exchange{}, nil, err // Replay has parsed it
	}
	maps.Copy(p.renamed, p.names[i].renames(now.runNames))
	return e, maps.Clone(p.renamed), nil
}

// takeLocked uses the first exchange of a key. What only asks, and changes nothing, may be asked more often than it was.
func (p *Player) takeLocked(key requestKey, method string) (int, bool) {
	if left := p.left[key]; len(left) > 0 {
		p.left[key] = left[1:]
		p.used[left[0]], p.last[key] = true, left[0]
		return left[0], true
	}
	i, ok := p.last[key]
	return i, ok && (method == http.MethodGet || method == http.MethodHead)
}

func (p *Player) recorded(s storedExchange) (normalised, error) {
	e, err := s.parse()
	return normalise(e.Request, p.stored.header.Folders, p.mask), err
}

func (p *Player) answer(req *http.Request, e exchange, rename renamer) (*http.Response, error) {
	r := e.Response
	if r.Status == 0 {
		return nil, fmt.Errorf("gateway: replay: exchange %d got no answer: %s", e.Seq, r.Error)
	}
	header := http.Header{}
	for name, value := range r.Headers {
		header.Set(name, value)
	}
	body := &playedBody{
		ctx: req.Context(), closed: make(chan struct{}), pace: p.opts.Pace,
		chunks: rewriteAnswer(p.stored.wire, r.Headers["Content-Type"], r.Chunks, rename.rewrite), end: io.EOF,
	}
	switch {
	case r.Lost != "":
		body.end = fmt.Errorf("gateway: replay: exchange %d was not recorded whole: %s is missing", e.Seq, r.Lost)
	case r.Cut || r.Error != "":
		body.end = fmt.Errorf("gateway: replay: exchange %d was cut here: %w", e.Seq, io.ErrUnexpectedEOF)
	}
	if err := body.wait(r.MS); err != nil {
		return nil, err
	}
	return playedResponse(req, r.Status, header, body), nil
}

// notRecorded reports to the agent that the recording has no answer, in a form that it does not retry.
func (p *Player) notRecorded(req *http.Request, err error) *http.Response {
	reply := p.stored.wire.Error(http.StatusBadRequest, advice.Text(err)) // the fault is with the request, not with a budget
	header := http.Header{"Content-Type": {reply.ContentType}}
	p.stored.wire.forbidRetry(header)
	return playedResponse(req, http.StatusPaymentRequired, header, io.NopCloser(bytes.NewReader(reply.Body)))
}

func playedResponse(req *http.Request, status int, header http.Header, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: -1, Request: req,
	}
}

// mismatchLocked compares a request with the exchanges that are left and reports the differences from the nearest.
func (p *Player) mismatchLocked(now normalised) error {
	err := &MismatchError{Recording: p.path, Number: p.requests, Method: now.method, Path: now.path}
	left := 32 // enough for what runs at the same time
	for i, s := range p.stored.exchanges {
		if p.used[i] || left == 0 {
			continue
		}
		left--
		if then, failed := p.recorded(s); failed == nil {
			err.nearer(s.seq, compareRequests(then, now))
		}
	}
	return err
}
