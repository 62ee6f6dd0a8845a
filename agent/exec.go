// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/drover-agents/drover/guard"
)

// An Executor is an adapter that can run commands where the agent of a request works.
type Executor interface {
	Adapter
	// Exec runs a command over the files that the agent of the request has, also while that works. Of the
	// request Dir and Workspace count. The command may be one that the agent has written: it is kept apart at
	// least as the agent is, has no network, and is ended after a bounded time.
	Exec(ctx context.Context, req Request, argv []string) (guard.Executed, error)
}
