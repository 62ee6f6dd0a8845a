// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"iter"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/tool"
)

// Agent is the name of the agent.
const Agent = "claude-code"

// An Adapter runs Claude Code. It is safe for concurrent use.
type Adapter struct {
	base      claude.Options
	isolation *isolation.Isolation
	kept      *conversations
	versions  versions
	// Of a Config: no transcripts, and a high effort where nothing names one.
	noTranscript, highEffort bool
	waiting                  waiting
}

var _ agent.Opener = (*Adapter)(nil)

// New makes an adapter. base has what every run shares: the CLI, its environment, MCP servers, subagents, settings, hooks;
// requests are laid over it. Nil means the zero options. The CLI is not looked up before Ready or Run.
//
// Each run is in a cell of its own; see [isolation.Isolation] for what that means, and [Adapter.In] for another isolation
// than the default. The cell finds the endpoint and the credential of model calls in the environment that base describes,
// and keeps both outside. Conversations are kept by the adapter, in memory, unless base has a Store.
//
// A field that the request leaves empty has the value of base, or else the CLI's own default, its own system
// prompt included. ForwardSubagentText is always set. The Transcript of a request replaces a Recorder.
// Values that base points to must not change while the adapter is in use.
func New(base *claude.Options) *Adapter {
	return &Adapter{base: orZero(base), kept: newConversations(conversationBytes)}
}

func orZero[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}

// Agent implements [agent.Adapter].
func (*Adapter) Agent() string { return Agent }

// Catalogue implements [agent.Adapter].
func (*Adapter) Catalogue() *tool.Catalogue { return catalogue.Tools() }

// Run implements [agent.Adapter]. Each run is a CLI of its own, which is gone when the loop ends.
//
// A run that cannot begin yields one error: a request or a base that cannot be honoured, before
// anything is started; a CLI that is missing or too old ([agent.ErrUnavailable]); a CLI that does not
// start. Whatever breaks later is an [event.Error] before the done event.
//
// The request's host is bound to the hook that the CLI calls before every tool call: a [gate.Engine], and a type that embeds
// one, as [BindGate] does. As root, outside of a sandbox, the CLI refuses the mode bypassPermissions; with a host it is then
// run in the default mode, where what the host allows runs all the same.
//
// With a workspace every call that may change files is a transaction there. Calls that have not come to
// their end when the run is over are rolled back after the done event; see [workspace.Workspace.Restored].
//
// When ctx ends the turn is interrupted. The done event has the CLI's final report, if that comes within
// 350 milliseconds; it usually takes 10 to 110.
func (a *Adapter) Run(ctx context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r, err := a.engage(ctx, req)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer r.closeQuietly()
		r.runPrompt(ctx, req.Prompt, yield)
	}
}

func (a *Adapter) engage(ctx context.Context, req agent.Request) (*run, error) {
	if err := checkPrompt(req.Prompt); err != nil {
		return nil, err
	}
	if r, err := a.prepared(ctx, req); r != nil || err != nil {
		return r, err
	}
	return a.start(ctx, req)
}

// prepared is a run that waits for a request, or nil.
func (a *Adapter) prepared(ctx context.Context, req agent.Request) (*run, error) {
	r, ended, err := a.waiting.take(ctx, req)
	for _, gone := range ended {
		gone.closeQuietly()
	}
	return r, err
}

// Open implements [agent.Opener]. The CLI and its cell are there until the conversation is closed. Each prompt
// has what [Adapter.Run] promises: an init, and one done event, with the usage of this prompt alone. The limits
// of the request are for all prompts together.
//
// The conversation is an [agent.Resetter]. With a workspace, the agent's calls are part of ctx's transaction.
func (a *Adapter) Open(ctx context.Context, req agent.Request) (agent.Conversation, error) {
	r, err := a.prepared(ctx, req)
	if r == nil && err == nil {
		r, err = a.launch(ctx, req)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// launch starts a run and waits until its CLI is up.
func (a *Adapter) launch(ctx context.Context, req agent.Request) (*run, error) {
	r, err := a.start(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := r.awaitStart(ctx); err != nil {
		_ = r.Close() // the first error is more useful
		return nil, err
	}
	return r, nil
}

// Dir is the working directory of requests that name none; empty if base has none either.
func (a *Adapter) Dir() string { return a.base.Dir }
