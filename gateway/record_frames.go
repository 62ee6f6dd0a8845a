// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

// eventStreamType is the content type of Bedrock's streams. A stream is frames: the length of the
// frame and of its headers, a checksum of both, the headers, the payload, a checksum of it all.
const eventStreamType = "application/vnd.amazon.eventstream"

const (
	preludeSize  = 12
	checksumSize = 4
)

// splitFrames cuts an answer into its frames; each has the time of the chunk in which it ended.
func splitFrames(chunks []chunk) []*answerEvent {
	var events []*answerEvent
	var open []byte
	for _, c := range chunks {
		open = append(open, c.bytes()...)
		for {
			n := frameLength(open)
			if n == 0 {
				break
			}
			events = append(events, newFrameEvent(c.MS, open[:n:n]))
			open = open[n:]
		}
	}
	if len(open) > 0 { // the answer was cut, or is none of frames
		events = append(events, &answerEvent{ms: chunks[len(chunks)-1].MS, raw: open})
	}
	return events
}

// frameLength is the length of the frame at the start of b; zero if b does not hold a whole one.
func frameLength(b []byte) int {
	if len(b) < preludeSize+checksumSize {
		return 0
	}
	total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) ||
		uint64(total) > uint64(len(b)) || uint64(headers)+preludeSize+checksumSize > uint64(total) {
		return 0
	}
	return int(total)
}

// newFrameEvent reads a frame. An event of the model stands encoded in the payload's "bytes"; the
// payload of an error is plain JSON.
func newFrameEvent(ms int64, raw []byte) *answerEvent {
	e := &answerEvent{ms: ms, raw: raw}
	body := preludeSize + int(binary.BigEndian.Uint32(raw[4:]))
	headers, content := raw[preludeSize:body], raw[body:len(raw)-checksumSize]
	var payload map[string]json.RawMessage
	var inner []byte
	switch {
	case json.Unmarshal(content, &payload) != nil:
	case json.Unmarshal(payload["bytes"], &inner) == nil && json.Valid(inner):
		e.data = inner
		e.wrap = func(data []byte) []byte {
			payload["bytes"], _ = json.Marshal(data) // bytes always encode
			return appendFrame(nil, headers, []byte(encodeJSON(payload)))
		}
	default:
		e.data = content
		e.wrap = func(data []byte) []byte { return appendFrame(nil, headers, data) }
	}
	return e
}

// appendFrame appends a frame of encoded headers and a payload.
func appendFrame(b, headers, payload []byte) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, uint32(preludeSize+len(headers)+len(payload)+checksumSize))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start:]))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start:]))
}
