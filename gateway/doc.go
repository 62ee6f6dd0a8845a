// SPDX-License-Identifier: Apache-2.0

// Package gateway stands between agents and the model. An agent's cell has no network; what it can
// reach is a listener that a [Run] of this package serves, outside of the cell. The gateway holds the
// credential, which never enters the cell, passes the model's answers on byte for byte as they come,
// counts what they cost, ends a run in the middle of an answer when its budget is spent, and can
// record the traffic.
//
// Where model calls go is an [Upstream]: Anthropic, a compatible endpoint, Bedrock, a scripted model
// or a recording.
package gateway
