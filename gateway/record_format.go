// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/plainfile"
)

// A recording is lines of JSON: a header, then one line for each exchange in the order in which they ended. Fields that a
// reader does not know are ignored; what an older reader would get wrong raises the version.
const recordingVersion = 1

type recordingHeader struct {
	Version  int       `json:"drover_recording"`
	Date     time.Time `json:"date"`
	Drover   string    `json:"drover"`
	Upstream string    `json:"upstream"`
	Wire     string    `json:"wire"`
	Region   string    `json:"region,omitempty"` // of Bedrock
	Folders  Folders   `json:"folders"`
}

// An exchange is a request and its answer. Seq counts from 1 in the order of the requests.
type exchange struct {
	Seq      int              `json:"seq"`
	AtMS     int64            `json:"at_ms"` // since the recording began
	Request  recordedRequest  `json:"request"`
	Response recordedResponse `json:"response"`
}

type recordedRequest struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Query   string            `json:"query,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    payload           `json:"body,omitzero"`
}

// A recordedResponse counts milliseconds from the request.
type recordedResponse struct {
	MS      int64             `json:"ms"`               // when the header came
	Status  int               `json:"status,omitempty"` // zero: no answer came
	Headers map[string]string `json:"headers,omitempty"`
	Chunks  []chunk           `json:"chunks,omitempty"`
	Error   string            `json:"error,omitempty"` // of the upstream, or why the reader went away
	Cut     bool              `json:"cut,omitempty"`   // the reader did not want the rest
	Lost    string            `json:"lost,omitempty"`  // what could not be recorded
}

// A payload is a body: JSON as it is, other text, or bytes.
type payload struct {
	JSON   json.RawMessage `json:"json,omitempty"`
	Text   string          `json:"text,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
}

func newPayload(b []byte) payload {
	switch {
	case len(b) == 0:
		return payload{}
	case json.Valid(b) && utf8.Valid(b):
		return payload{JSON: b}
	case utf8.Valid(b):
		return payload{Text: string(b)}
	}
	return payload{Base64: b}
}

func (p payload) bytes() []byte {
	switch {
	case p.JSON != nil:
		return p.JSON
	case p.Text != "":
		return []byte(p.Text)
	}
	return p.Base64
}

// A chunk is a part of an answer, as it was read.
type chunk struct {
	MS     int64  `json:"ms"`
	Text   string `json:"text,omitempty"`
	Base64 []byte `json:"base64,omitempty"` // if the part is not text
}

func newChunk(ms int64, b []byte) chunk {
	if utf8.Valid(b) {
		return chunk{MS: ms, Text: string(b)}
	}
	return chunk{MS: ms, Base64: b}
}

func (c chunk) bytes() []byte {
	if c.Base64 != nil {
		return c.Base64
	}
	return []byte(c.Text)
}

// Headers that are recorded beside those of the wire. Any other header could contain a credential.
var (
	requestHeaders  = []string{"Accept", "Content-Type", "User-Agent"}
	responseHeaders = []string{"Content-Type", "Retry-After"}
)

func pickHeaders(h http.Header, lists ...[]string) map[string]string {
	picked := map[string]string{}
	for _, names := range lists {
		for _, name := range names {
			if values := h.Values(name); len(values) > 0 {
				picked[name] = strings.Join(values, ", ")
			}
		}
	}
	return picked
}

func droverVersion() string {
	const module = "github.com/drover-agents/drover"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Version != "" {
			return m.Version
		}
	}
	return "unknown"
}

// recordingLimit is the longest line that is read: the largest answer, encoded, and its request.
const recordingLimit = 2*maxAnswer + 64<<20

// A storedRecording is the content of a file. Lines are parsed again when they are needed.
type storedRecording struct {
	header    recordingHeader
	wire      *Wire
	exchanges []storedExchange // by Seq
	note      string           // what a reader should know about the file, or ""
}

type storedExchange struct {
	seq  int
	line []byte
}

func (s storedExchange) parse() (e exchange, err error) { return e, json.Unmarshal(s.line, &e) }

func readRecordingFile(path string, wire *Wire) (*storedRecording, error) {
	file, err := plainfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gateway: replay: %w", err)
	}
	defer func() { _ = file.Close() }()
	rec, err := readRecording(file, wire)
	if err != nil {
		return nil, fmt.Errorf("gateway: replay: %s: %w", path, err)
	}
	return rec, nil
}

// readRecording reads a recording of a wire; nil is one that comes with this package. A last line without its end is what a killed run leaves; it is
// left out, with a note.
func readRecording(src io.Reader, wire *Wire) (*storedRecording, error) {
	in := lines.NewReader(src, recordingLimit)
	rec := &storedRecording{wire: wire}
	if err := rec.readHeader(in); err != nil {
		return nil, err
	}
	for {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", in.Number(), err)
		}
		if in.Last() {
			rec.note = fmt.Sprintf("line %d is not complete: the run that recorded it was killed in the middle of writing; this exchange is left out", in.Number())
			break
		}
		if err := rec.add(line); err != nil {
			return nil, advice.Wrap(fmt.Errorf("line %d is no exchange: %w", in.Number(), err), "record the run again")
		}
	}
	return rec, rec.order()
}

func (rec *storedRecording) readHeader(in *lines.Reader) error {
	line, err := in.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	err = json.Unmarshal(line, &rec.header)
	switch {
	case err != nil || rec.header.Version == 0:
		return advice.Wrap(errors.New("line 1 is not the header of a recording"), "give a file that was made by Record")
	case rec.header.Version > recordingVersion:
		return advice.Wrap(fmt.Errorf("the recording has format %d, this program reads up to %d", rec.header.Version, recordingVersion),
			"use the version of Drover that made it (%s) or a newer one", rec.header.Drover)
	}
	return rec.findWire()
}

// findWire takes the wire that comes with this package if the caller gave none.
func (rec *storedRecording) findWire() error {
	if rec.wire == nil {
		for _, known := range []*Wire{WireAnthropic, WireBedrock} {
			if known.Name == rec.header.Wire {
				rec.wire = known
			}
		}
	}
	switch {
	case rec.wire == nil:
		return advice.Wrap(fmt.Errorf("the recording is of an unknown wire, %q", rec.header.Wire), "set ReplayOptions.Wire")
	case rec.wire.Name != rec.header.Wire:
		return fmt.Errorf("the recording is of the wire %q, not of %q", rec.header.Wire, rec.wire.Name)
	}
	return rec.wire.validate()
}

// maxBodyValues is how many values the body of a request may have, beside one for each 16 bytes. A value takes a
// hundred bytes of memory, and a text of two bytes can be one.
const maxBodyValues = 100_000

// countValues counts the commas and opening brackets of a JSON text that are not in its strings.
func countValues(text []byte) int {
	n, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}

func (rec *storedRecording) add(line []byte) error {
	s := storedExchange{line: line}
	e, err := s.parse()
	if err == nil && (e.Seq < 1 || e.Request.Method == "" || e.Response.Status == 0 && e.Response.Error == "") {
		err = errors.New("it needs seq, request.method, and response.status or response.error")
	}
	if status := e.Response.Status; err == nil && status != 0 && !finalStatus(status) {
		err = fmt.Errorf("invalid status %d of an answer", status)
	}
	if body := e.Request.Body.JSON; err == nil && countValues(body) > maxBodyValues+len(body)/16 {
		err = fmt.Errorf("the body of the request has too many values for its size")
	}
	s.seq = e.Seq
	rec.exchanges = append(rec.exchanges, s)
	return err
}

// order puts the exchanges into the order of their requests.
func (rec *storedRecording) order() error {
	slices.SortStableFunc(rec.exchanges, func(a, b storedExchange) int { return a.seq - b.seq })
	for i := 1; i < len(rec.exchanges); i++ {
		if seq := rec.exchanges[i].seq; seq == rec.exchanges[i-1].seq {
			return advice.Wrap(fmt.Errorf("exchange %d is there twice", seq), "record the run again")
		}
	}
	return nil
}
