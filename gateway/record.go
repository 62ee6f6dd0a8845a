// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safetext"
)

// RecordOptions configures [Record]. The zero value is ready to use.
type RecordOptions struct {
	// Folders are those of the recorded run; [Replay] replaces them by the present ones.
	Folders Folders
	// Secrets are values that must not be in the recording. Known forms of keys and tokens are always removed.
	Secrets []string
}

// Folders are the directories of a run. They are in a recording so that it can be replayed in others.
type Folders struct {
	Dir    string `json:"dir,omitempty"`    // the working folder
	Home   string `json:"home,omitempty"`   // the home directory
	Config string `json:"config,omitempty"` // the agent's own folder, if it is not in Home
	Temp   string `json:"temp,omitempty"`   // temporary files, if they are not in Home
}

// A Recorder is an [Upstream] that writes what passes through it to a file. Answers pass unbuffered;
// requests are read whole before they are sent.
//
// A line of the file is one exchange, written when the exchange has ended, also if it was cut. No header that could contain
// a credential is written. An exchange is masked and written beside the traffic; Close waits for the last one.
type Recorder struct {
	up      Upstream
	mask    masker
	started time.Time
	writing sync.WaitGroup

	mu     sync.Mutex
	file   *os.File
	seq    int
	open   int           // exchanges that are not written yet
	idle   chan struct{} // closed when the last one is; nil if no caller waits
	err    error         // the first failure to write
	closed bool
}

// Record makes an [Upstream] that passes everything on to up and writes it to a new file at path,
// which only its owner may read. A file that is there already is left alone, and is an error.
func Record(up Upstream, path string, opts RecordOptions) (*Recorder, error) {
	if err := up.Wire().validate(); err != nil {
		return nil, fmt.Errorf("gateway: recording: the wire of the upstream %s cannot be used: %w", up.Name(), err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, advice.Wrap(fmt.Errorf("gateway: recording: %w", err), "remove the file, or record to another name")
	}
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("gateway: recording: %w", err), "record to a folder that exists and can be written")
	}
	r := &Recorder{up: up, mask: masker{safetext.NewRedactor(opts.Secrets...), up.Wire()}, started: time.Now(), file: file}
	header := recordingHeader{
		Version: recordingVersion, Date: r.started.UTC().Truncate(time.Second), Drover: droverVersion(),
		Upstream: r.mask.text(up.Name()), Wire: up.Wire().Name, Region: RegionOf(up), Folders: opts.Folders,
	}
	if err := r.writeLine(header); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return r, nil
}

// Name is the name of the recorded upstream.
func (r *Recorder) Name() string { return r.up.Name() }

// Region is that of the recorded upstream.
func (r *Recorder) Region() string { return RegionOf(r.up) }

// Wire is the wire of the recorded upstream.
func (r *Recorder) Wire() *Wire { return r.up.Wire() }

// RoundTrip sends the request to the recorded upstream. A failure to record does not disturb it; Close reports the failure.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readRequest(req)
	if err != nil {
		return nil, err
	}
	rec := &recording{recorder: r, began: time.Now(), request: req, body: body}
	rec.seq = r.next()
	resp, err := r.up.RoundTrip(withBody(req, body))
	if err != nil {
		rec.end(0, nil, err)
		return nil, err
	}
	resp.Body = rec.capture(resp)
	return resp, nil
}

// Close waits until every exchange that has ended is written, and reports the first failure to write. Exchanges that end
// later are not recorded. A file without any exchange is removed, so that a run that did not begin can be tried again.
func (r *Recorder) Close() error {
	r.mu.Lock()
	if r.closed {
		defer r.mu.Unlock()
		return r.err
	}
	r.closed = true
	r.mu.Unlock()
	r.writing.Wait()

	r.mu.Lock()
	defer r.mu.Unlock()
	mine, unknown := r.file.Stat()
	err := r.file.Close()
	if there, gone := os.Lstat(r.file.Name()); r.seq == 0 && unknown == nil && gone == nil && os.SameFile(mine, there) {
		err = errors.Join(err, os.Remove(r.file.Name()))
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("gateway: recording: %w", err)
	}
	return r.err
}

func (r *Recorder) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	r.open++
	return r.seq
}

// beside ends an exchange: it runs write on a goroutine that Close waits for.
func (r *Recorder) beside(write func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.writtenLocked()
		return
	}
	r.writing.Go(func() {
		write()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.writtenLocked()
	})
}

func (r *Recorder) writtenLocked() {
	if r.open--; r.open == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// Settle waits until every exchange that has begun is written, or ctx has ended. An agent knows its answer a moment before the
// exchange ends that brought it.
func (r *Recorder) Settle(ctx context.Context) error {
	r.mu.Lock()
	open, idle := r.open, r.idle
	if open > 0 && idle == nil {
		idle = make(chan struct{})
		r.idle = idle
	}
	r.mu.Unlock()
	if open == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("gateway: recording: %d exchanges have not ended: %w", open, context.Cause(ctx))
	}
}

// writeLine appends one line by one write, so that lines of parallel exchanges are whole.
func (r *Recorder) writeLine(v any) error {
	line, err := plainjson.Marshal(v) // a recording is read by people too
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.err == nil {
		_, err = r.file.Write(append(line, '\n'))
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("gateway: recording %s: %w", r.file.Name(), err)
	}
	return r.err
}

// readRequest reads the body of a request, which is one JSON document.
func readRequest(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	return body, errors.Join(err, req.Body.Close())
}

// withBody is req with a body that can be read again. Its answer comes uncompressed, so that it can be masked.
func withBody(req *http.Request, body []byte) *http.Request {
	out := req.Clone(req.Context())
	out.Header.Set("Accept-Encoding", "identity")
	if body == nil {
		return out
	}
	out.ContentLength = int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, _ = out.GetBody()
	return out
}
