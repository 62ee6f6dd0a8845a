// SPDX-License-Identifier: Apache-2.0

package drover

import "context"

// A RetryPolicy says when an evaluation that failed is tried again.
type RetryPolicy struct{}

// attempts tries until there is an answer, or no sense in trying again.
func (e *evaluation) attempts(ctx context.Context, emit emitFunc) (*outcome, error) {
	e.summary.Attempts++
	return e.attempt(ctx, emit)
}
