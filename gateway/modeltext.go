// SPDX-License-Identifier: Apache-2.0

package gateway

// This file has the texts of refused requests, which the agent and its commands read. The CLI shows a refused call of a subagent to its main agent.
const (
	textRefused    = "Drover's gateway refused this request: "
	textToken      = "it does not have the token of this run. Do not call the gateway directly"
	textRoute      = "the gateway passes only model calls. Do not use it for other requests"
	textLarge      = "it has more than %d bytes. Send a shorter request"
	textHeld       = "the requests in progress have more than %d bytes. Wait for their answers, then send it again"
	textIncomplete = "it ended before its body was complete. Send it again"
	textBody       = "its body is not one JSON object with one model. Send one JSON object that names one model"
	textModel      = "the model %q is not allowed in this run. Use an allowed model"
	textUnpriced   = "the model %q has no price, and this run has a budget in dollars. Use a model with a price, or ask the user to limit tokens or to set the price"
	textFallback   = "the fallback model %q is not allowed in this run or has no price. Remove it from the request"
	textRemote     = "it has %s. This run does not allow that: continue without it"
	textSurcharge  = "it has %s. Its price is not known, and this run has a budget in dollars: continue without it"
	textClosed     = "this run is over. Do not send further requests"
)
