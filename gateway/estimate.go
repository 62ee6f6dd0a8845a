// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"time"
)

// What an answer that did not come to its end has cost is estimated, rather high than low: an agent can end
// its answers wherever it likes.
const (
	inputBytes  = 4 // of a request for one token
	outputBytes = 3 // of an answer for one token
	// deltaEnvelope is what surrounds the text in an event of a stream.
	deltaEnvelope = 80
	// outputPerSecond is how fast a model writes, for what it thinks and does not show.
	outputPerSecond = 80
	// mostInput is more than any model reads.
	mostInput = 1_000_000
	// unsaidMaxTokens stands for the limit of an answer where the request has none.
	unsaidMaxTokens = 32_000
)

// tokensIn is how many tokens so many bytes may be.
func tokensIn(size, perToken int) int64 { return int64(max(0, size)+perToken-1) / int64(perToken) }

// estimate raises what an answer has reported to what it may have cost. It reports whether that changed
// anything.
func (c *call) estimate(r *reading) bool {
	before := r.tokens
	if !r.metered {
		c.estimateInput(&r.tokens)
	}
	output, most := r.deltas, c.asked.MaxTokens
	if most <= 0 {
		most = unsaidMaxTokens
	}
	switch {
	case !c.streams():
		output = most // it comes when all of it is written
	case !c.headAt.IsZero():
		output = max(output, int64(time.Since(c.headAt).Seconds()*outputPerSecond))
	}
	r.tokens.Output = max(r.tokens.Output, min(output, most, maxTokens))
	return r.tokens != before
}

// estimateInput takes the size of the request, at the highest price that it may have.
func (c *call) estimateInput(t *Tokens) {
	n := min(tokensIn(len(c.body), inputBytes), mostInput)
	switch {
	case bytes.Contains(c.body, []byte(`"1h"`)):
		t.CacheWrite1h = n
	case bytes.Contains(c.body, []byte(`cache_control`)):
		t.CacheWrite5m = n
	default:
		t.Input = n
	}
}

// streams reports whether the answer comes while it is written.
func (c *call) streams() bool {
	if c.meter == nil {
		return c.streamed
	}
	_, whole := c.meter.(*jsonMeter)
	return !whole
}
