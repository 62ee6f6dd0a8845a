// SPDX-License-Identifier: Apache-2.0

package gateway

import "time"

// The cost of an incomplete answer is estimated, rather high than low: an agent can end its answers wherever it likes.
const (
	inputBytes  = 4 // of a request for one token
	outputBytes = 3 // of an answer for one token
	// outputPerSecond is how fast a model writes, for what it thinks and does not show.
	outputPerSecond = 80
	// mostInput is more than any model reads.
	mostInput = 1_000_000
	// unsaidMaxTokens is the limit of an answer where the request has none.
	unsaidMaxTokens = 32_000
)

func tokensIn(size, perToken int) int64 { return int64(max(0, size)+perToken-1) / int64(perToken) }

// estimate raises what an answer has reported to what it may have cost. It reports whether that changed anything.
func (c *call) estimate(r *Reading) bool {
	before := r.Tokens
	if !r.Metered {
		r.Tokens = r.Tokens.plus(c.estimateInput())
	}
	output, most := r.pieces, c.asked.MaxTokens
	if most <= 0 {
		most = unsaidMaxTokens
	}
	switch {
	case !c.streams():
		output = most // it comes when all of it is written
	case !c.headAt.IsZero():
		output = max(output, int64(time.Since(c.headAt).Seconds()*outputPerSecond))
	}
	r.Tokens.Output = max(r.Tokens.Output, min(output, most, maxTokens))
	return r.Tokens != before
}

// estimateInput takes the size of the request, at the highest price that it may have.
func (c *call) estimateInput() Tokens {
	n := min(tokensIn(len(c.body), inputBytes), mostInput)
	if c.run.wire.Input == nil {
		return Tokens{Input: n}
	}
	return c.run.wire.Input(c.body, n)
}

func (c *call) streams() bool {
	if c.meter == nil {
		return c.streamed
	}
	return c.stream != nil
}
