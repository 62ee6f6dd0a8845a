// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/tool"
)

// EngineOptions configures an [Engine]. Nil and the zero value are ready to use.
type EngineOptions struct {
	// Facts returns the facts at the moment of a call; it may look at files, see [FindTarget]. Where it leaves Now, Dir or
	// Workspace empty the engine fills in the time, the directory that the call names, and the one of the [CallContext];
	// Calls is at least its own count. Nil means those four, and the Target. It is called by several goroutines, and again
	// about an input that a policy or the approver has written. A function that panics denies.
	Facts func(ctx context.Context, c Call) Facts
	// Approver is asked where the verdict of the gate is Ask. Nil denies such calls.
	Approver Approver
	// ApprovalTimeout is how long an answer may take. Zero means 5 minutes; a negative value as long as the caller waits.
	ApprovalTimeout time.Duration
	// Emit receives each question ([event.PermissionRequest]) and each decision ([event.Decision]) before it takes effect.
	// It is called by several goroutines and must not block. A call is denied if Emit returns an error about it, or panics.
	Emit func(event.Event) error
	// Logger receives failures whose text is not for the model: errors of the approver, panics, and
	// MCP servers that the gate seems to know under another key. Nil discards.
	Logger *slog.Logger
}

const defaultApprovalTimeout = 5 * time.Minute

// An Engine applies a gate to the calls of one run. It is a [tool.Decider], so that one engine can decide wherever an agent
// asks and in a registry. An adapter binds it to its agent: it asks before every call, with a [CallContext], and sets the
// agent up by [Engine.AgentConfig]. It is safe for concurrent use.
//
// There is one verdict for each call: the first decision is kept and returned to every other caller, questions about a call
// that is being decided wait for that decision, and the approver is asked once. A call is its id together with the tool and
// the input: the same id with another tool or another input is another call, except the input with which the decision itself
// replaced the first. A call that the CLI begins under an id that it has used is another one too. Inputs are compared by
// meaning, not by the order of their keys, and the full and the bare name of a registered tool are one. A denial is kept
// too, also one because of a timeout or a cancelled question. A call without an id is decided again each time. The engine
// keeps the last 4096 verdicts.
type Engine struct {
	gate     *Gate
	opts     EngineOptions
	calls    atomic.Int64
	verdicts verdicts
	answers  answers
}

// NewEngine makes an engine of a gate. A nil gate denies everything.
func NewEngine(g *Gate, opts *EngineOptions) *Engine {
	e := &Engine{gate: g}
	e.verdicts.settled.Size, e.answers.kept.Size = remembered, remembered
	if g == nil {
		e.gate = &Gate{}
	}
	if opts != nil {
		e.opts = *opts
	}
	e.opts.Logger = safelog.Logger(e.opts.Logger)
	if e.opts.ApprovalTimeout == 0 {
		e.opts.ApprovalTimeout = defaultApprovalTimeout
	}
	return e
}

// Decide makes the decision about a call, or returns the one that was made. Its verdict is never Ask: where
// that of the gate is, the approver is asked.
func (e *Engine) Decide(ctx context.Context, call event.ToolCall) event.Decision {
	c, key, ok := e.identify(ctx, call)
	if !ok {
		return e.Deny(ctx, call, fmt.Sprintf(decisionFailed, call.Name))
	}
	if call.ID == "" {
		return e.decide(ctx, c)
	}
	v, mine := e.verdicts.claim(key, callContextFrom(ctx).Begins)
	if !mine {
		return e.await(ctx, v, call)
	}
	// Waiting callers always get a decision; the zero decision denies.
	defer func() { e.verdicts.settle(key, v) }()
	v.decision = e.decide(ctx, c)
	return v.decision
}

// identify finds out which tool is called. It reports false if a registry panics.
func (e *Engine) identify(ctx context.Context, call event.ToolCall) (c Call, key callKey, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			e.logPanic(ctx, "looking a tool up panicked", call, p)
			ok = false
		}
	}()
	c = e.gate.canonical(call, serverKey(callContextFrom(ctx).Server))
	if t, running := tool.Candidate(ctx); running {
		c = e.gate.candidate(c, t)
	}
	return c, callKey{call.ID, e.gate.identity(c), c.Risk, c.Needs, inputDigest(call.Input)}, true
}

// await waits for a decision that is being made. It does not outlast ctx.
func (e *Engine) await(ctx context.Context, v *verdict, call event.ToolCall) event.Decision {
	select {
	case <-v.done:
	default:
		select {
		case <-v.done:
		case <-ctx.Done():
			return e.Deny(ctx, call, fmt.Sprintf(decisionWithdrawn, call.Name))
		}
	}
	d := v.decision
	d.CallID, d.Tool = call.ID, call.Name
	return d
}

const policyEngine = "engine"

func (e *Engine) decide(ctx context.Context, c Call) event.Decision {
	d := e.judge(ctx, c)
	d.CallID, d.Tool = c.ID, c.Name
	return e.record(ctx, d)
}

// record emits a decision and returns it; one that cannot be emitted becomes a denial.
func (e *Engine) record(ctx context.Context, d event.Decision) event.Decision {
	if e.emit(ctx, d) {
		return d
	}
	denial := event.Decision{
		CallID: d.CallID, Tool: d.Tool, Policy: policyEngine,
		Reason: fmt.Sprintf(decisionUnsaved, d.Tool),
	}
	denial.Chain = appendVerdict(slices.Clip(d.Chain), &denial) // Emit may have kept d
	return denial
}

// judge asks the gate and, where its verdict is Ask, the approver. A panic denies.
func (e *Engine) judge(ctx context.Context, c Call) (d event.Decision) {
	c.chain = newChain(len(e.gate.policies))
	defer func() {
		d.Chain = c.chain.verdicts
	}()
	defer func() {
		if p := recover(); p != nil {
			e.logPanic(ctx, "deciding about a tool call panicked", c.ToolCall, p)
			d = c.decided(event.Decision{Policy: policyEngine, Reason: fmt.Sprintf(decisionFailed, c.Name)})
		}
	}()
	c.before = new(int(e.calls.Add(1)) - 1)
	if d = e.decideInput(ctx, c); d.Verdict == event.Ask {
		d = e.ask(ctx, c, d)
	}
	return d
}

// decideInput asks the gate. Facts about one input do not apply to another, so an
// input that a policy has written is judged once more, with its own facts.
func (e *Engine) decideInput(ctx context.Context, c Call) event.Decision {
	facts := e.facts(ctx, c)
	d := e.gate.decide(&c, &facts)
	if d.Verdict == event.Deny || d.Input == nil {
		return d
	}
	c.Input, c.Again = d.Input, true
	facts = e.facts(ctx, c)
	again := e.gate.decide(&c, &facts)
	switch {
	case again.Verdict == event.Deny:
		return again
	case again.Input != nil && !bytes.Equal(again.Input, d.Input):
		return c.decided(event.Decision{Policy: policyEngine, Reason: fmt.Sprintf(inputsDisagree, c.Name)})
	case again.Verdict < d.Verdict:
		again.Input = d.Input
		return again
	}
	return d
}

// facts returns the facts of the caller about a call, completed by the engine.
func (e *Engine) facts(ctx context.Context, c Call) Facts {
	var f Facts
	if e.opts.Facts != nil {
		f = e.opts.Facts(ctx, c)
	} else {
		f.Target = FindTarget(c, c.Dir)
	}
	if f.Now.IsZero() {
		f.Now = time.Now()
	}
	if !c.Again {
		*c.before = max(f.Calls, *c.before)
	}
	f.Calls = *c.before // a call keeps its number
	if f.Dir == "" {
		f.Dir = c.Dir
	}
	if f.Workspace == "" {
		f.Workspace = callContextFrom(ctx).Workspace
	}
	return f
}

// emit reports whether the event was taken.
func (e *Engine) emit(ctx context.Context, p event.Payload) (taken bool) {
	if e.opts.Emit == nil {
		return true
	}
	defer func() {
		if r := recover(); r != nil {
			e.logPanic(ctx, "emitting an event panicked", event.ToolCall{}, r)
			taken = false
		}
	}()
	err := e.opts.Emit(event.New(p))
	if err != nil {
		e.opts.Logger.ErrorContext(ctx, "a decision could not be recorded", "error", err)
	}
	return err == nil
}

func (e *Engine) logPanic(ctx context.Context, what string, call event.ToolCall, p any) {
	e.opts.Logger.ErrorContext(ctx, what, "tool", call.Name, "call", call.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}
