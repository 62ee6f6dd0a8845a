// SPDX-License-Identifier: Apache-2.0

package gateway

import "sync"

// Practise has the run answer all model calls itself, with an empty answer, until end is called: an agent that has
// asked once is faster the next time. These calls are not passed on, counted or told of. It is not possible
// with Bedrock and other wires without [Wire.Practice]; then ok is false and nothing has changed.
func (r *Run) Practise() (end func(), ok bool) {
	if r.wire.Practice == nil {
		return func() {}, false
	}
	r.practises.Add(1)
	return sync.OnceFunc(func() { r.practises.Add(-1) }), true
}
