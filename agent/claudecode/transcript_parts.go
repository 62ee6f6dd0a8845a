// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent"
)

// A transcriptLine is a line with the data that its position needs.
type transcriptLine struct {
	agent.TranscriptLine
	fields
	copied bool // a file has it too
}

// fields are those of a JSON object, by their exact names.
type fields map[string]json.RawMessage

// text is a field that is a text, or "".
func (f fields) text(name string) string { return textOf(f[name]) }

func (f fields) object(name string) fields { return objectOf(f[name]) }

func (f fields) isTrue(name string) bool { return string(bytes.TrimSpace(f[name])) == "true" }

func objectOf(raw json.RawMessage) fields {
	var f fields
	_ = json.Unmarshal(raw, &f) // another type has no fields
	return f
}

// parse reads a line into memory of its own. A line that is not JSON is kept as text.
func (r *transcriptRecorder) parse(raw []byte) transcriptLine {
	raw = bytes.Clone(raw)
	if !json.Valid(raw) {
		raw, _ = json.Marshal(string(raw)) // strings always encode
	}
	l := transcriptLine{fields: objectOf(raw)}
	l.Raw, l.ID, l.SessionID = raw, l.text("uuid"), cmp.Or(l.text("session_id"), l.text("sessionId"))
	l.Time = r.now()
	if written, err := time.Parse(time.RFC3339Nano, l.text("timestamp")); err == nil {
		l.Time = written
	}
	return l
}

// parts are what a line is made of. The usage of a model call is reported with its first line.
func (r *transcriptRecorder) parts(l transcriptLine) []agent.TranscriptPart {
	parts, call := partsOf(l.Raw, l.fields)
	if usage := call.object("usage"); usage != nil {
		id := call.text("id")
		if counted, _ := r.counted.Get(id); !counted {
			r.counted.Put(id, id != "")
			parts = append(parts, agent.TranscriptPart{Type: agent.TranscriptTokenUsage, Detail: call["usage"]})
		}
	}
	return parts
}

// partsOf are what a line is made of, and the answer of the model that it belongs to, if it does.
func partsOf(raw json.RawMessage, line fields) (parts []agent.TranscriptPart, call fields) {
	whole := func(t agent.TranscriptType) []agent.TranscriptPart {
		return []agent.TranscriptPart{{Type: t, Detail: raw}}
	}
	switch kind := line.text("type"); kind {
	case "user":
		return messageParts(raw, line, agent.TranscriptUserMessage), nil
	case "assistant":
		if line.isTrue("isApiErrorMessage") || line.text("error") != "" {
			return whole(agent.TranscriptError), nil // text of the CLI instead of the model
		}
		return messageParts(raw, line, agent.TranscriptAssistantMessage), line.object("message")
	case "system", "result":
		if isFailure(line) {
			return whole(agent.TranscriptError), nil
		}
		return whole(agent.TranscriptSystemEvent), nil
	default:
		if systemKinds[kind] {
			return whole(agent.TranscriptSystemEvent), nil
		}
		return whole(agent.TranscriptUnknown), nil
	}
}

func isFailure(line fields) bool {
	switch line.text("subtype") {
	case "api_error", "api_retry", "mirror_error", "session_writes_lost":
		return true
	}
	return line.isTrue("is_error") || line.text("level") == "error"
}

// systemKinds are the types of the other lines that are known, of the stream and of the files.
var systemKinds = map[string]bool{
	"rate_limit_event": true, "tool_progress": true, "tool_use_summary": true, "auth_status": true, "command_lifecycle": true,
	"prompt_suggestion": true, "conversation_reset": true, "active_goal": true, "autocompact_state": true, "attachment": true, "progress": true, "summary": true, "queue-operation": true,
	"last-prompt": true, "cost-state": true, "file-history-snapshot": true, "custom-title": true, "ai-title": true, "tag": true,
	"agent_metadata": true, "agent-setting": true, "agent-name": true, "mode": true, "permission-mode": true, "tools-used": true,
	"atis-latch": true, "api-request": true, "api-request-shape": true, "api-request-blob": true, "pr-link": true, "worktree-state": true,
}

func messageParts(raw json.RawMessage, line fields, other agent.TranscriptType) []agent.TranscriptPart {
	content := line.object("message")["content"]
	var blocks []json.RawMessage
	if json.Unmarshal(content, &blocks) != nil || len(blocks) == 0 {
		if len(content) == 0 {
			content = raw
		}
		return []agent.TranscriptPart{{Type: other, Detail: content}}
	}
	parts := make([]agent.TranscriptPart, len(blocks))
	for i, block := range blocks {
		parts[i] = agent.TranscriptPart{Type: blockType(objectOf(block).text("type"), other), Detail: block}
	}
	return parts
}

func blockType(kind string, other agent.TranscriptType) agent.TranscriptType {
	switch {
	case kind == "thinking", kind == "redacted_thinking":
		return agent.TranscriptThinking
	case strings.HasSuffix(kind, "tool_result"):
		return agent.TranscriptToolResult
	case strings.HasSuffix(kind, "tool_use"):
		return agent.TranscriptToolUse
	}
	return other
}
