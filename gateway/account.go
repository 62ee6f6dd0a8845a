// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"math"
	"net/http"
	"time"
)

// count records what the answer has reported since the last time.
func (c *call) count() {
	if !c.target.op.metered() {
		return
	}
	c.mu.Lock()
	now := *c.meter.read()
	c.mu.Unlock()
	if now.tokens == c.counted.tokens {
		return
	}
	c.settle(now)
}

// settle brings what is recorded up to a reading, and counts the request with the first.
func (c *call) settle(now reading) {
	if now.model != "" {
		c.model = now.model
	}
	total := tally{requests: 1, tokens: now.tokens}
	if price, ok := c.run.gateway.prices.Of(c.model); ok {
		total.cost = price.cost(now.tokens)
	}
	more := total.minus(c.counted)
	c.counted = total
	c.run.ledger.add(c.model, c.agent, more)
	c.run.record(more.guardUsage())
}

// report records the rest and tells about the call.
func (c *call) report() {
	var last reading
	if c.meter != nil {
		c.mu.Lock()
		c.meter.close()
		last = *c.meter.read()
		c.mu.Unlock()
	}
	if c.target.op.metered() && c.attempts > 0 {
		c.settle(last)
		if c.status == http.StatusOK && !last.metered && c.problem == "" {
			c.run.ledger.missed()
		}
	}
	if c.problem == "" {
		c.problem = last.errorType
	}
	_, priced := c.run.gateway.prices.Of(c.model)
	c.run.o.Emit(ModelCall{
		Operation: string(c.target.op), Model: c.model, Agent: c.agent, Status: c.status, Streamed: c.streamed,
		Effort: c.asked.Effort, Thinking: c.asked.Thinking,
		Tokens: c.counted.tokens, CostUSD: c.counted.cost.dollars(), Unpriced: !priced && c.counted.tokens != (Tokens{}),
		Attempts: c.attempts, FirstByteMS: milliseconds(c.firstByte), DurationMS: milliseconds(time.Since(c.began)),
		StopReason: last.stopReason, RetryAfterMS: milliseconds(c.retryAfter), Error: c.problem,
	})
	_ = c.run.spent() // what was just recorded may have reached a limit
}

// milliseconds keeps microseconds.
func milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
