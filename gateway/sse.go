// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
)

// ServerSentEvents is a Stream whose events are server-sent events with JSON as data. Event takes the data of each
// as it passes; piece and errorEvent are the fields of [Stream].
func ServerSentEvents(event func(r *Reading, data []byte), piece func(data []byte) (Piece, bool), errorEvent func(status int, message string) []byte) *Stream {
	return &Stream{
		ContentType: "text/event-stream",
		NewMeter:    func() Meter { return &sseMeter{event: event} },
		ErrorEvent:  errorEvent,
		EndEvent:    "\n\n",
		Cut:         sseEnd,
		Open:        openSSE,
		Piece:       piece,
	}
}

type sseMeter struct {
	reading Reading
	event   func(r *Reading, data []byte)
	line    []byte // the beginning of a line whose end has not come
	long    bool   // that line is longer than a meter keeps, and is passed over
}

func (m *sseMeter) Reading() *Reading { return &m.reading }

func (m *sseMeter) Feed(p []byte) (boundary int) {
	boundary = -1
	for at := 0; at < len(p); {
		end := bytes.IndexByte(p[at:], '\n')
		if end < 0 {
			m.keep(p[at:])
			break
		}
		if m.take(p[at : at+end]) {
			boundary = at + end + 1
		}
		at += end + 1
	}
	return boundary
}

func (m *sseMeter) Close() {
	if len(m.line) > 0 {
		m.take(nil)
	}
}

func (m *sseMeter) keep(part []byte) {
	if m.long = m.long || len(m.line)+len(part) > maxKept; m.long {
		m.line = nil
		return
	}
	m.line = append(m.line, part...)
}

// take reads the line that ends with rest, and reports whether it was the empty one after an event.
func (m *sseMeter) take(rest []byte) (blank bool) {
	if m.long {
		m.long = false
		return false
	}
	line := rest
	if len(m.line) > 0 {
		m.line = append(m.line, rest...)
		line = m.line
		m.line = m.line[:0]
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		m.event(&m.reading, bytes.TrimPrefix(data, []byte(" ")))
	}
	return len(line) == 0
}

// sseEnd is the length of the first event with the empty line after it, or -1. It looks from a little before the
// bytes that it has not seen, so that a long event that comes in many pieces is read once.
func sseEnd(b []byte, seen int) int {
	for at := max(seen-len("\n\r"), 0); ; {
		end := bytes.IndexByte(b[at:], '\n')
		if end < 0 {
			return -1
		}
		at += end + 1
		switch {
		case bytes.HasPrefix(b[at:], []byte("\n")):
			return at + 1
		case bytes.HasPrefix(b[at:], []byte("\r\n")):
			return at + 2
		}
	}
}

func openSSE(event []byte) (data []byte, wrap func(data []byte) []byte) {
	var before, lines []string
	for line := range strings.Lines(string(event)) {
		if text, ok := strings.CutPrefix(line, "data:"); ok {
			lines = append(lines, strings.TrimRight(strings.TrimPrefix(text, " "), "\r\n"))
		} else if strings.TrimRight(line, "\r\n") != "" {
			before = append(before, line)
		}
	}
	if joined := strings.Join(lines, "\n"); json.Valid([]byte(joined)) {
		return []byte(joined), func(data []byte) []byte {
			return []byte(strings.Join(before, "") + "data: " + string(data) + "\n\n")
		}
	}
	return nil, nil
}
