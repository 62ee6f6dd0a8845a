// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

// A frame of an AWS event stream: its length, the length of its headers, a checksum of both; the
// headers; the payload; a checksum of all.
const (
	framePrelude = 12
	frameTrailer = 4
	maxFrame     = 32 << 20
)

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
		frame, ok := m.next(rest)
		if !ok {
			break
		}
		m.frame(frame)
		rest = rest[len(frame):]
		boundary = len(m.kept) - len(rest) - before
	}
	m.kept = append(m.kept[:0], rest...)
	return boundary
}

// next cuts off a whole frame.
func (m *frameMeter) next(data []byte) (frame []byte, ok bool) {
	if len(data) < framePrelude {
		return nil, false
	}
	size, headers := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	if crc32.ChecksumIEEE(data[:8]) != binary.BigEndian.Uint32(data[8:]) || size > maxFrame ||
		uint64(size) < framePrelude+frameTrailer+uint64(headers) {
		m.lost = true
		return nil, false
	}
	if len(data) < int(size) {
		return nil, false
	}
	return data[:size], true
}

func (m *frameMeter) frame(frame []byte) {
	headers := binary.BigEndian.Uint32(frame[4:])
	payload := frame[framePrelude+headers : len(frame)-frameTrailer]
	var chunk struct {
		Bytes   []byte `json:"bytes"`
		Message string `json:"message"`
	}
	if json.Unmarshal(payload, &chunk) != nil {
		return
	}
	if chunk.Bytes != nil {
		m.event(chunk.Bytes)
	} else if kind := frameHeader(frame[framePrelude:framePrelude+headers], ":exception-type"); kind != "" {
		m.errorType, m.finished = clip(kind), true
	}
}

// stringHeader is the type of the headers that we know.
const stringHeader = 7

// frameHeader finds a header of text; "" if there is none before one of another type.
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

// exceptionFrame is a frame that ends a stream with an error.
func exceptionFrame(kind string, payload []byte) []byte {
	return eventFrame([][2]string{
		{":exception-type", kind}, {":content-type", "application/json"}, {":message-type", "exception"},
	}, payload)
}

// eventFrame makes a frame with headers of text.
func eventFrame(texts [][2]string, payload []byte) []byte {
	var headers []byte
	for _, h := range texts {
		headers = append(headers, byte(len(h[0])))
		headers = append(headers, h[0]...)
		headers = append(headers, stringHeader)
		headers = binary.BigEndian.AppendUint16(headers, uint16(len(h[1])))
		headers = append(headers, h[1]...)
	}
	size := framePrelude + len(headers) + len(payload) + frameTrailer
	frame := binary.BigEndian.AppendUint32(nil, uint32(size))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(headers)))
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	frame = append(append(frame, headers...), payload...)
	return binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
}
