// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"sync"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/recent"
	"github.com/drover-agents/drover/tool"
)

// ownResults remembers how calls of our own tools failed. The CLI reports only that they did, not
// whether the registry denied them or holds them for an approval.
type ownResults struct {
	mu     sync.Mutex
	failed recent.Map[string, event.ToolResult]
}

// format is [FormatResult] for a registry whose failures are remembered.
func (o *ownResults) format(r tool.Result) claude.ToolResult {
	if !r.OK() && r.CallID != "" {
		o.mu.Lock()
		o.failed.Size = queuedIDs
		o.failed.Put(r.CallID, r.Event())
		o.mu.Unlock()
	}
	return FormatResult(r)
}

// complete puts status and failure of our own tool into a result that the CLI reports as an error.
func (o *ownResults) complete(r *event.ToolResult) {
	if o == nil || r.Status != event.ToolError {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if own, ok := o.failed.Get(r.ID); ok && own.Failure != nil {
		r.Status, r.Failure = own.Status, own.Failure
	}
}
