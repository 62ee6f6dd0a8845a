// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"fmt"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
)

// What is remembered of a conversation does not grow with it.
func TestStream_MemoryIsBounded(t *testing.T) {
	n, _ := newNormaliser()
	for i := range rememberedLines + 100 {
		id := fmt.Sprint("c", i)
		n.events(decode(t, says(fmt.Sprint("m", i), fmt.Sprint("u", i), call1(id))))
		n.runs(event.CallID(id), fmt.Sprint("a", i))
		n.events(decode(t, returns(id, "done", false, "")))
		if i%100 == 0 {
			*n = n.next()
		}
	}
	if n.lines.Len() != rememberedLines || n.agents.Len() != rememberedAgents {
		t.Errorf("%d lines and %d agents are remembered", n.lines.Len(), n.agents.Len())
	}
}

func TestTranscript_MemoryIsBounded(t *testing.T) {
	told := 0
	s := newScribe(func(agent.TranscriptLine) { told++ })
	s.mirrored = true
	const more = 100
	for i := range scribedLines + more {
		line := fmt.Sprintf(`{"type":"assistant","uuid":"u%d","parent_tool_use_id":"c%d","message":{"id":"m%d","usage":{"output_tokens":1}}}`, i, i, i)
		s.hear([]byte(line))
		s.hear(fmt.Appendf(nil, `{"type":"transcript_mirror","filePath":"/p/s/subagents/agent-c%d.jsonl","entries":[%s]}`, i, line))
	}
	if told != scribedLines+more {
		t.Errorf("%d lines were told, want each once", told)
	}
	if s.filed.Len() != scribedLines || s.copied.Len() != scribedLines || s.counted.Len() != scribedLines || len(s.sources) > 0 {
		t.Errorf("%d lines, %d copies, %d model calls and %d sources are remembered", s.filed.Len(), s.copied.Len(), s.counted.Len(), len(s.sources))
	}
}
