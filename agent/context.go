// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/drover-agents/drover/tool"
)

var adapterKey = tool.NewKey[Adapter]("adapter")

// WithAdapter returns a context in which [AdapterFrom] finds the adapter.
func WithAdapter(ctx context.Context, a Adapter) context.Context { return adapterKey.With(ctx, a) }

// AdapterFrom returns the adapter whose agent calls a tool's handler, and whether there is one. drover.Evaluate
// puts it there. A handler may evaluate another prompt with it.
func AdapterFrom(ctx context.Context) (Adapter, bool) { return adapterKey.From(ctx) }
