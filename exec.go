// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/guard"
)

// exec runs the commands of completion checks: as the options say, or else as the adapter can, in a second cell
// over the same files. It is nil where neither says how: then no command is run.
//
// What such a command writes stays, also in a workspace with checkpoints: it is no call that could be undone.
func (h *host) exec() guard.Exec {
	if h.opts.Exec != nil {
		return h.opts.Exec
	}
	adapter, ok := h.adapter.(agent.Executor)
	if !ok {
		return nil
	}
	where := agent.Request{Settings: agent.Settings{Dir: h.opts.Dir, Workspace: h.place.workspace()}}
	return func(ctx context.Context, argv []string) (guard.Executed, error) {
		return adapter.Exec(ctx, where, argv)
	}
}
