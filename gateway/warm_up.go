// SPDX-License-Identifier: Apache-2.0

package gateway

import "sync"

// WarmUp has the run answer all model calls itself, with an empty answer, until end is called: an agent that has
// asked once is faster the next time. These calls are not sent, not counted and emit no event. It is not possible
// with Bedrock and other wires without [Wire.WarmUpAnswer]; then ok is false.
func (r *Run) WarmUp() (end func(), ok bool) {
	if r.wire.WarmUpAnswer == nil {
		return func() {}, false
	}
	r.warmUps.Add(1)
	return sync.OnceFunc(func() { r.warmUps.Add(-1) }), true
}
