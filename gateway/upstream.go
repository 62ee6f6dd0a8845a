// SPDX-License-Identifier: Apache-2.0

package gateway

import "net/http"

// An Upstream is where model calls go. It adds the address and the credential to requests that have
// neither; the gateway has removed the credentials of the agent. It must be safe for
// concurrent use, must not follow redirects, and must not buffer the body of an answer.
//
// A request has a path and a query, no host; its GetBody is set, so that it can be sent twice, and its context ends when
// the agent has gone or the run is over. An upstream that has a method CloseIdleConnections is called when the last open
// [Run] of a gateway that uses it is closed; one that wraps another should pass that on.
type Upstream interface {
	http.RoundTripper
	// Name identifies the upstream for people and the queue: upstreams of one name back off together. It has no secret.
	Name() string
	// Wire is the API that it speaks.
	Wire() *Wire
}

// RegionOf is the region of an upstream that has a method Region() string, as those of Bedrock do. It is empty for others.
func RegionOf(up Upstream) string {
	if regional, ok := up.(interface{ Region() string }); ok {
		return regional.Region()
	}
	return ""
}
