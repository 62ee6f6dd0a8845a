// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"iter"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// An Adapter drives one kind of agent. It can be made, registered and asked for its readiness on a
// machine that lacks the agent. It is safe for concurrent use, and so are its runs.
type Adapter interface {
	// Agent is the name of the agent: "claude-code".
	Agent() string
	// Catalogue is what is known of the agent's own tools. A gate denies tools that it does not have, wherever
	// permissions, a list of allowed tools or a rule about risks are set. Nil means that it has none.
	Catalogue() *tool.Catalogue
	// Ready finds out whether a run could begin. It may start the agent to ask for its version, but never a model.
	Ready(ctx context.Context) Readiness
	// Run has the agent work on one prompt. The last event is an [event.Done]; the events carry
	// neither RunID, Seq, Position nor Role, which are the [Runner]'s to give. A run that cannot begin yields
	// one error and no event. A later error means that the run broke; it is the last pair.
	//
	// When ctx ends the adapter stops the agent, and still yields a Done if it can do so soon. When
	// the loop over the events ends, what Run has started is gone.
	Run(ctx context.Context, req Request) iter.Seq2[event.Event, error]
}

// A Host answers the questions of an adapter during a run. An adapter knows neither policies nor sessions: it asks
// its host. A host may offer more than the adapter needs, such as a way to bind
// itself to one kind of agent; the adapter of that agent looks for it.
type Host interface {
	// Decide decides about a tool call before it runs. A [gate.Engine] is such a host.
	tool.Decider
}

// An Emitter is a host that emits events into the stream of the run, as a gate emits its decisions.
type Emitter interface {
	Host
	// EmitTo is called before each run of a [Runner]. Events about a call are beside it in the stream; events after the
	// end of the run are discarded. It never blocks.
	EmitTo(emit func(event.Event))
}
