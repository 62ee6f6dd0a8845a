// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// A host answers what the agent asks during an evaluation: the gate, the hooks, the tools of the prompt.
type host struct {
	*evaluation
	registry *tool.Registry
}

func (e *evaluation) newHost() (*host, error) {
	h := &host{evaluation: e}
	around := session.ToolTx(e.opts.Session, &session.ToolTxOptions{Adapter: e.adapter.Agent(), Prompt: e.prompt.Name(), DispatchValues: true})
	if w := e.place.workspace(); w != nil {
		around = workspace.ToolTx(w, around)
	}
	var err error
	h.registry, err = tool.NewRegistry(&tool.Options{Around: around, Before: e.opts.Before, After: e.opts.After, Timeout: e.opts.ToolTimeout, Logger: e.opts.Logger})
	return h, err
}

// opened makes the skills of opened sections available.
func (h *host) opened(context.Context, prompt.Opened) error { return nil }

// bind puts the host into the request.
func (h *host) bind(*agent.Request) error { return nil }

// saw records an event of the agent.
func (h *host) saw(ctx context.Context, ev event.Event) {
	_, _ = h.opts.Session.Dispatch(context.WithoutCancel(ctx), ev)
}

// settle records the calls of a turn that never came to an end.
func (h *host) settle(context.Context) {}
