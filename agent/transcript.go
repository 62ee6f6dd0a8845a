// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"time"
)

// A TranscriptLine is one line of what an agent writes down about its conversation.
type TranscriptLine struct {
	// Source is "main", or "subagent:" and the id of the subagent.
	Source    string
	SessionID string
	Time      time.Time
	Raw       json.RawMessage
}
