// SPDX-License-Identifier: Apache-2.0

package gateway

import "encoding/json"

// splitFrames cuts an answer into its frames; each has the time of the chunk in which it ended.
func splitFrames(chunks []chunk) []*answerEvent {
	var events []*answerEvent
	var open []byte
	for _, c := range chunks {
		open = append(open, c.bytes()...)
		for {
			f, _ := cutFrame(open)
			if f == nil {
				break
			}
			events = append(events, newFrameEvent(c.MS, f))
			open = open[len(f):]
		}
	}
	if len(open) > 0 { // the answer was cut, or is none of frames
		events = append(events, &answerEvent{ms: chunks[len(chunks)-1].MS, raw: open})
	}
	return events
}

// newFrameEvent reads a frame. An event of the model stands encoded in the payload's "bytes"; the
// payload of an error is plain JSON.
func newFrameEvent(ms int64, f frame) *answerEvent {
	e := &answerEvent{ms: ms, raw: f}
	headers, content := f.headers(), f.payload()
	var payload map[string]json.RawMessage
	var inner []byte
	switch {
	case json.Unmarshal(content, &payload) != nil:
	case json.Unmarshal(payload["bytes"], &inner) == nil && json.Valid(inner):
		e.data = inner
		e.wrap = func(data []byte) []byte {
			payload["bytes"], _ = json.Marshal(data) // bytes always encode
			return newFrame(headers, []byte(encodeJSON(payload)))
		}
	default:
		e.data = content
		e.wrap = func(data []byte) []byte { return newFrame(headers, data) }
	}
	return e
}
