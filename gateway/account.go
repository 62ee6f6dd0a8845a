// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"math"
	"net/http"
	"time"
)

func (c *call) count() {
	if !c.route.Metered {
		return
	}
	c.mu.Lock()
	now := *c.meter.Reading()
	c.mu.Unlock()
	if now.Tokens == c.counted.tokens {
		return
	}
	c.settle(now)
}

// settle brings what is recorded up to a reading, and counts the request with the first.
func (c *call) settle(now Reading) {
	if now.Model != "" {
		// Of another name, the price of the model that was asked for counts.
		if model := c.run.wire.canonical(clip(now.Model)); c.run.affordable(model) {
			c.model = model
		}
	}
	total := tally{requests: 1, tokens: now.Tokens}
	if price, ok := c.run.prices.Models[c.model]; ok {
		total.cost = price.cost(now.Tokens)
	}
	more := total.minus(c.counted)
	c.counted = total
	c.run.ledger.add(c.model, c.agent, more)
	c.run.record(more.guardUsage())
}

func (c *call) report() {
	var last Reading
	if c.meter != nil {
		c.mu.Lock()
		c.meter.Close()
		last = *c.meter.Reading()
		c.mu.Unlock()
	}
	if c.route.Metered && c.attempts > 0 {
		estimated := c.owed && (!last.Finished || last.Error != "") && c.estimate(&last)
		c.settle(last)
		if c.estimated = estimated; estimated {
			c.run.ledger.guessed()
		}
		if c.status == http.StatusOK && !last.Metered && c.problem == "" {
			c.run.ledger.missed()
		}
	}
	if c.problem == "" {
		c.problem = clip(last.Error)
	}
	if c.problem == "" && c.upstreamStatus >= http.StatusBadRequest {
		c.problem = c.run.wire.ErrorName(c.upstreamStatus)
	}
	_, priced := c.run.prices.Models[c.model]
	c.run.o.Emit(ModelCall{
		Operation: c.route.Operation, Model: c.model, Provider: cmp.Or(c.run.wire.Provider, c.run.wire.Name), Agent: c.agent, Status: c.status, Streamed: c.streamed,
		Effort: c.asked.Effort, Thinking: c.asked.Thinking,
		Tokens: c.counted.tokens, CostUSD: c.counted.cost.dollars(), Unpriced: !priced && c.counted.tokens != (Tokens{}),
		Attempts: c.attempts, FirstByteMS: milliseconds(c.firstByte), DurationMS: milliseconds(time.Since(c.began)),
		StopReason: clip(last.StopReason), RetryAfterMS: milliseconds(c.retryAfter), Error: c.problem,
		Aborted: c.unread, Estimated: c.estimated,
	})
	_ = c.run.spent() // what was just recorded may have reached a limit
	c.run.settled(c)
}

// milliseconds keeps microseconds.
func milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
