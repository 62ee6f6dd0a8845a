// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"

	"github.com/drover-agents/drover/event"
)

// A Decider decides about calls. A gate's engine is one.
type Decider interface {
	// Decide makes one decision about a call. It may take long, since it may ask a person; the
	// context ends when the caller no longer waits.
	Decide(ctx context.Context, call event.ToolCall) event.Decision
}

// A DeciderFunc is a [Decider] made of a function.
type DeciderFunc func(ctx context.Context, call event.ToolCall) event.Decision

// Decide calls the function.
func (f DeciderFunc) Decide(ctx context.Context, call event.ToolCall) event.Decision {
	return f(ctx, call)
}
