// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"strings"
	"sync"
)

// Practise has the run answer all model calls itself, with an empty answer, until end is called: a CLI that has
// asked once is faster the next time. These calls are not passed on, counted or told of. It is not possible
// with Bedrock; then ok is false and nothing has changed.
func (r *Run) Practise() (end func(), ok bool) {
	if r.o.Upstream.Wire() != WireAnthropic {
		return func() {}, false
	}
	r.practises.Add(1)
	return sync.OnceFunc(func() { r.practises.Add(-1) }), true
}

const practiceMessage = `{"id":"msg_practice","type":"message","role":"assistant","model":"practice","content":[{"type":"text","text":"."}],` +
	`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}`

// practiceEvents is the message as a stream.
var practiceEvents = func() string {
	var b strings.Builder
	for _, event := range [][2]string{
		{"message_start", `"message":{"id":"msg_practice","type":"message","role":"assistant","model":"practice","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}`},
		{"content_block_start", `"index":0,"content_block":{"type":"text","text":""}`},
		{"content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"."}`},
		{"content_block_stop", `"index":0`},
		{"message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":0}`},
		{"message_stop", ""},
	} {
		b.WriteString("event: " + event[0] + "\ndata: {\"type\":\"" + event[0] + "\"")
		if event[1] != "" {
			b.WriteString("," + event[1])
		}
		b.WriteString("}\n\n")
	}
	return b.String()
}()

// practise answers a call with next to nothing.
func (c *call) practise() {
	kind, body := "application/json", practiceMessage
	switch {
	case c.target.op == opCountTokens:
		body = `{"input_tokens":0}`
	case c.streamed:
		kind, body = "text/event-stream", practiceEvents
	}
	c.w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(c.w, body) // an agent that has gone needs no answer
}
