// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/safetext"
)

// The kinds of events that a gateway emits. A reader of their JSON gets an [event.Extension].
const (
	KindModelCall  event.Kind = "gateway:model_call"
	KindRefused    event.Kind = "gateway:refused"
	KindLimit      event.Kind = "gateway:limit"
	KindBackOff    event.Kind = "gateway:back_off"
	KindConnection event.Kind = "gateway:connection"
)

// A ModelCall is emitted after each call that the gateway let through, also if it failed.
type ModelCall struct {
	// Operation is what the wire calls it: messages, count_tokens or inference_profiles on those of this package, of which
	// only messages cost anything.
	Operation string `json:"operation"`
	// Model is the one that answered; the one that was asked for if none did. See [CanonicalModel].
	Model string `json:"model,omitempty"`
	// Provider is who runs the model; see [Wire.Provider]. Logs of earlier versions have none.
	Provider string `json:"provider,omitempty"`
	// Agent is [MainAgent], or the name of a subagent.
	Agent string `json:"agent"`
	// Status is the status that the agent received; zero if it had disconnected before.
	Status   int  `json:"status"`
	Streamed bool `json:"streamed"`
	// Effort and Thinking are what was asked of the model; see [Ask].
	Effort   string `json:"effort,omitempty"`
	Thinking string `json:"thinking,omitempty"`
	Tokens   Tokens `json:"tokens"`
	// CostUSD is zero for a model without a price; Unpriced is true then.
	CostUSD  float64 `json:"costUsd"`
	Unpriced bool    `json:"unpriced,omitzero"`
	// Attempts is how often the upstream was asked; zero if the run ended while the call waited.
	Attempts int `json:"attempts"`
	// FirstByteMS is the time until the answer began, waiting included, in milliseconds.
	FirstByteMS float64 `json:"firstByteMs,omitzero"`
	DurationMS  float64 `json:"durationMs"`
	StopReason  string  `json:"stopReason,omitempty"`
	// RetryAfterMS is how long an upstream that was too busy asks to wait before the next call.
	RetryAfterMS float64 `json:"retryAfterMs,omitzero"`
	// Error is why the answer is not complete: the API's type of error, or a failure of the gateway.
	Error string `json:"error,omitempty"`
	// Aborted means that the agent disconnected before the end of the answer.
	Aborted bool `json:"aborted,omitzero"`
	// Estimated means that the answer is not complete, so that a part of Tokens is an estimate.
	Estimated bool `json:"estimated,omitzero"`
}

// EventKind implements [event.Payload].
func (ModelCall) EventKind() event.Kind { return KindModelCall }

// String is the model, what the call consumed, how long it took, and why it failed: "opus: 1,204 in, 96 out, $0.0060, 2.1 s".
func (c ModelCall) String() string {
	text := fmt.Sprintf("%s: %s, %s, %s", c.Model, c.Tokens, safetext.Dollars(c.CostUSD), safetext.Span(time.Duration(c.DurationMS*float64(time.Millisecond))))
	if c.Error != "" {
		text += ": " + c.Error
	}
	return text
}

// A Refused is emitted for a request that is not allowed. No part of the request was sent. A run emits the
// first thousand of them. A refused connection has no Status.
type Refused struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Model  string `json:"model,omitempty"`
	Status int    `json:"status"`
	Reason string `json:"reason"`
}

// EventKind implements [event.Payload].
func (Refused) EventKind() event.Kind { return KindRefused }

// String is the request and the reason: "POST /v1/files: it is not allowed".
func (r Refused) String() string { return r.Method + " " + r.Path + ": " + r.Reason }

// A Limit is emitted once, when the run is ended by a limit or by [Run.Stop].
type Limit struct {
	// Limit is the field of [guard.Budget] that is reached, Deadline for the time; empty if another reason ended the run.
	Limit string `json:"limit,omitempty"`
	// Consumed and Max are as in [guard.BudgetError].
	Consumed float64 `json:"consumed,omitzero"`
	Max      float64 `json:"max,omitzero"`
	Reason   string  `json:"reason"`
}

// EventKind implements [event.Payload].
func (Limit) EventKind() event.Kind { return KindLimit }

// String is the reason.
func (l Limit) String() string { return l.Reason }

// A BackOff is emitted when a call waits because the upstream is overloaded.
type BackOff struct {
	Upstream string  `json:"upstream"`
	Status   int     `json:"status"`
	Attempt  int     `json:"attempt"`
	WaitMS   float64 `json:"waitMs"`
}

// EventKind implements [event.Payload].
func (BackOff) EventKind() event.Kind { return KindBackOff }

// String is the upstream, its status, and the wait: "api.anthropic.com answered 529, attempt 2, waiting 1.5 s".
func (b BackOff) String() string {
	return fmt.Sprintf("%s answered %d, attempt %d, waiting %s", b.Upstream, b.Status, b.Attempt, safetext.Span(time.Duration(b.WaitMS*float64(time.Millisecond))))
}

func (r *Run) emitLimit(reason error) {
	l := Limit{Reason: firstLine(reason)}
	if budget, ok := errors.AsType[*guard.BudgetError](reason); ok {
		l.Limit, l.Consumed, l.Max = budget.Limit, budget.Consumed, budget.Max
	} else if errors.Is(reason, guard.ErrDeadlineExceeded) {
		l.Limit = "Deadline"
	}
	r.gateway.logger.Info("gateway: the run is stopped", "run", r.o.RunID, "reason", l.Reason)
	r.o.Emit(l)
}

func (r *Run) emitBackOff(status, attempt int, wait time.Duration) {
	b := BackOff{r.o.Upstream.Name(), status, attempt, milliseconds(wait)}
	r.gateway.logger.Info("gateway: backing off", "run", r.o.RunID, "upstream", b.Upstream, "status", status, "wait", wait)
	r.o.Emit(b)
}

// A refusal is why a request does not pass. Status defaults to 403.
type refusal struct {
	path, model, reason string
	status              int
}

// maxRefused bounds the events that an agent can cause.
const maxRefused = 1000

func (r *Run) refuse(w http.ResponseWriter, req *http.Request, why *refusal) {
	if why.status == 0 {
		why.status = http.StatusForbidden
	}
	r.wire.writeError(w, why.status, textRefused+why.reason)
	r.emitRefused(Refused{clip(req.Method), clip(why.path), clip(why.model), why.status, why.reason})
}

func (r *Run) emitRefused(e Refused) {
	if r.refused.Add(1) > maxRefused {
		return
	}
	r.gateway.logger.Info("gateway: refused", "run", r.o.RunID, "method", e.Method, "path", e.Path, "reason", e.Reason)
	r.o.Emit(e)
}
