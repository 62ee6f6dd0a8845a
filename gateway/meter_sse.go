// SPDX-License-Identifier: Apache-2.0

package gateway

import "bytes"

// An sseMeter reads server-sent events.
type sseMeter struct {
	reading
	line []byte // the beginning of a line whose end has not come
	long bool   // that line is longer than a meter keeps, and is passed over
}

func (m *sseMeter) read() *reading { return &m.reading }

func (m *sseMeter) feed(p []byte) (boundary int) {
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

func (m *sseMeter) close() {
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
		m.event(bytes.TrimPrefix(data, []byte(" ")))
	}
	return len(line) == 0
}
