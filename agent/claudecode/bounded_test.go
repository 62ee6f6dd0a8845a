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
		n.events(decode(t, assistantLine(fmt.Sprint("m", i), fmt.Sprint("u", i), call1(id))))
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
	reported := 0
	r := newTranscriptRecorder(func(agent.TranscriptLine) { reported++ })
	r.mirrored = true
	const more = 100
	for i := range recordedLines + more {
		line := fmt.Sprintf(`{"type":"assistant","uuid":"u%d","parent_tool_use_id":"c%d","message":{"id":"m%d","usage":{"output_tokens":1}}}`, i, i, i)
		feed(r, line)
		feed(r, fmt.Sprintf(`{"type":"transcript_mirror","filePath":"/p/s/subagents/agent-c%d.jsonl","entries":[%s]}`, i, line))
	}
	if reported != recordedLines+more {
		t.Errorf("%d lines were reported, want each once", reported)
	}
	if r.filed.Len() != recordedLines || r.copied.Len() != recordedLines || r.counted.Len() != recordedLines || len(r.sources) > 0 {
		t.Errorf("%d lines, %d copies, %d model calls and %d sources are remembered", r.filed.Len(), r.copied.Len(), r.counted.Len(), len(r.sources))
	}
}
