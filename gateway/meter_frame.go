// SPDX-License-Identifier: Apache-2.0

package gateway

import "encoding/json"

// A frameMeter reads an AWS event stream whose payloads carry the events of the Messages API.
type frameMeter struct {
	reading
	kept []byte
	lost bool // the stream makes no sense any more
}

func (m *frameMeter) read() *reading { return &m.reading }
func (m *frameMeter) close()         {}

func (m *frameMeter) feed(p []byte) (boundary int) {
	boundary = -1
	if m.lost {
		return boundary
	}
	before := len(m.kept) // of earlier pieces
	m.kept = append(m.kept, p...)
	rest := m.kept
	for {
		f, sound := cutFrame(rest)
		m.lost = !sound
		if f == nil {
			break
		}
		m.frame(f)
		rest = rest[len(f):]
		boundary = len(m.kept) - len(rest) - before
	}
	m.kept = append(m.kept[:0], rest...)
	return boundary
}

func (m *frameMeter) frame(f frame) {
	var chunk struct {
		Bytes   []byte `json:"bytes"`
		Message string `json:"message"`
	}
	if json.Unmarshal(f.payload(), &chunk) != nil {
		return
	}
	if chunk.Bytes != nil {
		m.event(chunk.Bytes)
	} else if kind := frameHeader(f.headers(), ":exception-type"); kind != "" {
		m.errorType, m.finished = clip(kind), true
	}
}
