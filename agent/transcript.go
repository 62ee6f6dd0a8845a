// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"time"
)

// A TranscriptLine is one line of the transcript that an agent writes.
type TranscriptLine struct {
	// Source is [MainSource], or [SubagentSource] and the id of the subagent.
	Source    string
	SessionID string
	// ID is the agent's own name of the line. Empty if it has none.
	ID string
	// Time is when it was written, by the agent's clock, or else when it was received.
	Time time.Time
	// Raw is the line as the agent wrote it, and Parts what it is made of, in order. Every line has a part.
	Raw   json.RawMessage
	Parts []TranscriptPart
}

// Sources of a [TranscriptLine].
const (
	MainSource     = "main"
	SubagentSource = "subagent:"
)

// A TranscriptPart is one message, one call or one result. Most lines have one part.
type TranscriptPart struct {
	Type TranscriptType
	// Detail is the part of the line, byte for byte, or the whole line.
	Detail json.RawMessage
}

// A TranscriptType is what a part of a transcript is.
type TranscriptType string

// The types of parts.
const (
	TranscriptUserMessage      TranscriptType = "user_message"
	TranscriptAssistantMessage TranscriptType = "assistant_message"
	TranscriptToolUse          TranscriptType = "tool_use"
	TranscriptToolResult       TranscriptType = "tool_result"
	TranscriptThinking         TranscriptType = "thinking"
	TranscriptSystemEvent      TranscriptType = "system_event"
	TranscriptTokenUsage       TranscriptType = "token_usage" // of one model call, reported once
	TranscriptError            TranscriptType = "error"
	TranscriptUnknown          TranscriptType = "unknown" // a line that this version does not know
)
