// SPDX-License-Identifier: Apache-2.0

package gateway

// An Ask is what a request asks of a model.
type Ask struct {
	// Model and Agent are as in [ModelCall].
	Model, Agent string
	// Effort is how hard the model must work. Empty means that the request does not set it.
	Effort string
	// Thinking is "adaptive", "enabled" or "disabled". Empty means that the request does not set it.
	Thinking string
	// MaxTokens bounds the answer.
	MaxTokens int64
	// Tools is how many tools the model is offered.
	Tools int
}

func (c *call) inspect() error {
	if c.run.o.Inspect == nil || !c.route.Metered {
		return nil
	}
	return c.run.o.Inspect(c.asked)
}
