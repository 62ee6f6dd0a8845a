// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"iter"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

// Agent is the name of the agent.
const Agent = "claude-code"

// An Adapter runs Claude Code. It is safe for concurrent use.
type Adapter struct {
	base claude.Options
}

var _ agent.Adapter = (*Adapter)(nil)

// New makes an adapter. base has what every run shares: the CLI, its environment, MCP servers,
// subagents, settings, hooks; requests are laid over it. Nil means the zero options. Nothing is looked
// for before Ready or Run.
func New(base *claude.Options) *Adapter {
	a := new(Adapter)
	if base != nil {
		a.base = *base
	}
	return a
}

// Agent implements [agent.Adapter].
func (*Adapter) Agent() string { return Agent }

// Ready implements [agent.Adapter].
func (a *Adapter) Ready(ctx context.Context) agent.Readiness {
	panic("to be written")
}

// Run implements [agent.Adapter].
func (a *Adapter) Run(ctx context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	panic("to be written")
}
