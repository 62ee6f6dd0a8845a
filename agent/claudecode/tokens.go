// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"bytes"
	"encoding/json"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safetext"
)

// KindTokens is the kind of [Tokens].
const KindTokens event.Kind = "claude-code:tokens"

// Tokens are what the model calls have used that have ended so far. They are for live displays: a
// run that yields text while it is written reports them after each call. The final count is [event.Done.Usage].
type Tokens struct {
	// Input includes what was read from a cache or written to it.
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// EventKind implements [event.Payload].
func (Tokens) EventKind() event.Kind { return KindTokens }

// String is both directions: "1,204 in, 96 out".
func (t Tokens) String() string {
	return safetext.Thousands(t.Input) + " in, " + safetext.Thousands(t.Output) + " out"
}

// streamTokens is the part of a stream event that counts. Counts are of the whole model call so far.
type streamTokens struct {
	Type    string
	Message struct{ Usage streamUsage }
	Usage   streamUsage
}

type streamUsage struct {
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

func (u streamUsage) input() int64 {
	return max(0, u.Input) + max(0, u.CacheRead) + max(0, u.CacheWrite)
}

// countTokens adds up the tokens of model calls in the stream. Input is reported when they begin, mostly again at the end.
func (n *normaliser) countTokens(at eventPosition, m *claude.StreamEvent) {
	begins, ends := bytes.Contains(m.Event, []byte(`"message_start"`)), bytes.Contains(m.Event, []byte(`"message_delta"`))
	if !begins && !ends {
		return
	}
	var read streamTokens
	if json.Unmarshal(m.Event, &read) != nil {
		return
	}
	n.begunInput.Size = rememberedAgents
	switch read.Type {
	case "message_start":
		n.begunInput.Put(at.parent, read.Message.Usage.input())
	case "message_delta":
		begun, _ := n.begunInput.Get(at.parent)
		n.tokens.Input += max(read.Usage.input(), begun)
		n.tokens.Output += max(0, read.Usage.Output)
		n.begunInput.Put(at.parent, 0)
		n.emit(at, n.tokens)
	}
}
