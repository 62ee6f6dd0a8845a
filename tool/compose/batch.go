// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"context"
	"fmt"
	"sync"

	"github.com/drover-agents/drover/tool"
)

// Batch configures how [ExecuteAll] runs several calls. Nil and the zero value run all of them at once, to the end.
type Batch struct {
	// Concurrency bounds how many run at once. Zero means no limit; 1 runs them in order.
	Concurrency int
	// FailFast cancels the other calls when one does not succeed.
	FailFast bool
}

// ExecuteAll runs several calls of a registry and returns their results in the order of the calls, when all have
// ended. Calls that were cancelled before they began have results that say so.
func ExecuteAll(ctx context.Context, r *tool.Registry, calls []tool.Call, how *Batch) []tool.Result {
	var b Batch
	if how != nil {
		b = *how
	}
	width := len(calls)
	if b.Concurrency > 0 {
		width = min(width, b.Concurrency)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]tool.Result, len(calls))
	next := make(chan int)
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for i := range next {
				results[i] = r.Execute(ctx, calls[i])
				if b.FailFast && !results[i].OK() {
					cancel(&otherFailedError{calls[i].Name})
				}
			}
		})
	}
	for i := range calls {
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

// otherFailedError is the cause of a cancellation by FailFast.
type otherFailedError struct{ tool string }

func (e *otherFailedError) Error() string {
	return fmt.Sprintf(callStopped, e.tool)
}
