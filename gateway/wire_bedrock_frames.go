// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

const eventStreamType = "application/vnd.amazon.eventstream"

// A stream is frames: lengths of frame and headers, a checksum of both; the headers; the payload; a checksum of all.
const (
	framePrelude = 12
	frameTrailer = 4
	maxFrame     = 32 << 20
)

// A frame is a whole one.
type frame []byte

func (f frame) headers() []byte { return f[framePrelude : framePrelude+f.headersLength()] }
func (f frame) payload() []byte { return f[framePrelude+f.headersLength() : len(f)-frameTrailer] }

func (f frame) headersLength() uint32 { return binary.BigEndian.Uint32(f[4:]) }

// cutFrame is the frame at the start of data, nil if it is not whole yet, and false if the data is not a sequence of frames.
func cutFrame(data []byte) (f frame, sound bool) {
	if len(data) < framePrelude {
		return nil, true
	}
	size, headers := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	if crc32.ChecksumIEEE(data[:8]) != binary.BigEndian.Uint32(data[8:]) || size > maxFrame ||
		uint64(size) < framePrelude+frameTrailer+uint64(headers) {
		return nil, false
	}
	if len(data) < int(size) {
		return nil, true
	}
	return data[:size:size], true
}

func newFrame(headers, payload []byte) frame {
	f := binary.BigEndian.AppendUint32(nil, uint32(framePrelude+len(headers)+len(payload)+frameTrailer))
	f = binary.BigEndian.AppendUint32(f, uint32(len(headers)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, headers...), payload...)
	return binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
}

// stringHeader is the type of the headers that we know.
const stringHeader = 7

// frameHeader is the value of a text header, or "" if it is missing or a header of another type comes first.
func frameHeader(headers []byte, name string) string {
	for len(headers) > 0 {
		n := int(headers[0])
		if len(headers) < 1+n+3 || headers[1+n] != stringHeader {
			return ""
		}
		key, size := string(headers[1:1+n]), int(binary.BigEndian.Uint16(headers[n+2:]))
		headers = headers[n+4:]
		if len(headers) < size {
			return ""
		}
		if key == name {
			return string(headers[:size])
		}
		headers = headers[size:]
	}
	return ""
}

func exceptionFrame(kind string, payload []byte) frame {
	return eventFrame([][2]string{
		{":exception-type", kind}, {":content-type", "application/json"}, {":message-type", "exception"},
	}, payload)
}

func eventFrame(texts [][2]string, payload []byte) frame {
	var headers []byte
	for _, h := range texts {
		headers = append(headers, byte(len(h[0])))
		headers = append(headers, h[0]...)
		headers = append(headers, stringHeader)
		headers = binary.BigEndian.AppendUint16(headers, uint16(len(h[1])))
		headers = append(headers, h[1]...)
	}
	return newFrame(headers, payload)
}

// A frameMeter reads an AWS event stream whose payloads carry the events of the Messages API.
type frameMeter struct {
	reading Reading
	kept    []byte
	lost    bool // the stream makes no sense any more
}

func (m *frameMeter) Reading() *Reading { return &m.reading }
func (m *frameMeter) Close()            {}

func (m *frameMeter) Feed(p []byte) (boundary int) {
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
		readMessagesEvent(&m.reading, chunk.Bytes)
	} else if kind := frameHeader(f.headers(), ":exception-type"); kind != "" {
		m.reading.Error, m.reading.Finished = kind, true
	}
}

// frameEnd is the length of the frame at the start of an answer, or -1.
func frameEnd(answer []byte, _ int) int {
	f, _ := cutFrame(answer)
	if f == nil {
		return -1
	}
	return len(f)
}

// openFrame reads a frame. An event of the model is encoded in the payload's "bytes"; an error's payload is plain JSON.
func openFrame(event []byte) (data []byte, wrap func(data []byte) []byte) {
	f := frame(event)
	headers, content := f.headers(), f.payload()
	var payload map[string]json.RawMessage
	var inner []byte
	switch {
	case json.Unmarshal(content, &payload) != nil:
		return nil, nil
	case json.Unmarshal(payload["bytes"], &inner) == nil && json.Valid(inner):
		return inner, func(data []byte) []byte {
			payload["bytes"], _ = json.Marshal(data) // bytes always encode
			return newFrame(headers, []byte(encodeJSON(payload)))
		}
	}
	return content, func(data []byte) []byte { return newFrame(headers, data) }
}
