// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
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
	if now.model != "" && c.run.affordable(now.model) { // of another name, the price of the model that was asked for counts
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
		estimated := c.owed && (!last.finished || last.errorType != "") && c.estimate(&last)
		c.settle(last)
		if c.estimated = estimated; estimated {
			c.run.ledger.guessed()
		}
		if c.status == http.StatusOK && !last.metered && c.problem == "" {
			c.run.ledger.missed()
		}
	}
	if c.problem == "" {
		c.problem = last.errorType
	}
	if c.problem == "" && c.upstreamStatus >= http.StatusBadRequest {
		c.problem = cmp.Or(statusErrors[c.upstreamStatus], "api_error")
	}
	_, priced := c.run.gateway.prices.Of(c.model)
	c.run.o.Emit(ModelCall{
		Operation: string(c.target.op), Model: c.model, Agent: c.agent, Status: c.status, Streamed: c.streamed,
		Effort: c.asked.Effort, Thinking: c.asked.Thinking,
		Tokens: c.counted.tokens, CostUSD: c.counted.cost.dollars(), Unpriced: !priced && c.counted.tokens != (Tokens{}),
		Attempts: c.attempts, FirstByteMS: milliseconds(c.firstByte), DurationMS: milliseconds(time.Since(c.began)),
		StopReason: last.stopReason, RetryAfterMS: milliseconds(c.retryAfter), Error: c.problem,
		Aborted: c.unread, Estimated: c.estimated,
	})
	_ = c.run.spent() // what was just recorded may have reached a limit
	c.run.settled(c)
}

// statusErrors are the API's names for its errors, for answers that have none.
var statusErrors = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", statusOverloaded: "overloaded_error",
}

// milliseconds keeps microseconds.
func milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
