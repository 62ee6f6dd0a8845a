// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
)

func TestTokens_AreReportedAfterEachModelCall(t *testing.T) {
	stream := func(parent, event string) string {
		return `{"type":"stream_event","session_id":"s","parent_tool_use_id":` + parent + `,"event":` + event + `}`
	}
	var n normaliser
	var got []Tokens
	for _, line := range []string{
		stream(`null`, `{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}`),
		stream(`"toolu_1"`, `{"type":"message_start","message":{"id":"m2","usage":{"input_tokens":7,"output_tokens":1}}}`),
		stream(`null`, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"\"message_delta\""}}`),
		stream(`null`, `{"type":"message_delta","usage":{"output_tokens":3}}`),
		stream(`"toolu_1"`, `{"type":"message_delta","usage":{"input_tokens":7,"cache_creation_input_tokens":2,"output_tokens":4}}`),
		stream(`null`, `{"type":"message_delta","usage":{"output_tokens":-3}}`),
	} {
		m, err := claude.DecodeMessage([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range n.events(m) {
			if tokens, ok := e.Payload.(Tokens); ok {
				got = append(got, tokens)
			}
		}
	}
	if diff := cmp.Diff([]Tokens{{15, 3}, {24, 7}, {24, 7}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
