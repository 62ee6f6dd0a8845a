// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

// notice reports notices of the CLI, and failures that do not end the run. Most notices are passed over: states,
// hooks, lists of commands.
func (n *normaliser) notice(m claude.Message) {
	here := eventPosition{turn: n.turn}
	switch m := m.(type) {
	case *claude.TaskStarted:
		n.taskStarted(m)
	case *claude.TaskProgress:
		n.taskProgress(m)
	case *claude.TaskUpdated:
		n.taskUpdated(m)
	case *claude.TaskNotification:
		n.taskNotification(m)
	case *claude.CompactBoundary:
		n.setSession(m.SessionID)
		n.emit(here, Compaction{Trigger: m.Trigger, TokensBefore: m.PreTokens, TokensAfter: m.PostTokens, DurationMS: m.Duration.Milliseconds()})
	case *claude.RateLimitEvent:
		n.rateLimit(m)
	case *claude.PermissionDenied:
		n.permissionDenied(m)
	case *claude.APIRetry:
		n.failed(here, retryCode(m.Error, m.ErrorStatus), retryMessage(m.Error, m.ErrorStatus, m.Attempt, m.MaxRetries, m.RetryDelay), nil)
	case *claude.ToolProgress:
		if r := m.SubagentRetry; r != nil {
			at := n.positionOf(event.CallID(m.ToolUseID), r.AgentID)
			n.failed(at, retryCode(r.ErrorCategory, r.ErrorStatus), retryMessage(r.ErrorCategory, r.ErrorStatus, r.Attempt, r.MaxRetries, r.RetryDelay), nil)
		}
	case *claude.ModelRefusalFallback:
		n.failed(here, m.Subtype(), fmt.Sprintf("%s refused to answer; %s goes on", m.OriginalModel, m.FallbackModel), nil)
	case *claude.ModelRefusalNoFallback:
		n.failed(here, m.Subtype(), m.OriginalModel+" refused to answer", nil)
	case *claude.Informational:
		if m.Level == "warning" {
			n.failed(here, cmp.Or(m.Tag, m.Subtype()), m.Content, nil)
		}
	case *claude.MirrorError:
		n.failed(here, m.Subtype(), "the session could not be stored: "+m.Error, nil)
	case *claude.SessionWritesLost:
		n.failed(here, cmp.Or(m.ErrorCode, m.Subtype()), "the disk is full; the session cannot be continued as it was", nil)
	case *claude.AuthStatus:
		if m.Error != "" {
			n.failed(here, m.Type(), m.Error, nil)
		}
	}
}

// permissionDenied notes that the CLI denied a call. It comes before the result of the call.
func (n *normaliser) permissionDenied(m *claude.PermissionDenied) {
	id := event.CallID(m.ToolUseID)
	if id == "" {
		return
	}
	r := n.ledger.Read(id)
	if r == nil {
		r = n.ledger.AddReportedEnd(id)
		r.Reading.Turn = n.turn
	}
	r.Reading.Denied = true
}

// rateLimit reports limits only when they are near or reached.
func (n *normaliser) rateLimit(m *claude.RateLimitEvent) {
	if m.Status == "" || m.Status == "allowed" {
		return
	}
	r := RateLimit{Status: m.Status, Type: m.RateLimitType, Utilization: m.Utilization}
	if !m.ResetsAt.IsZero() {
		r.ResetsAt = m.ResetsAt.UnixMilli()
	}
	n.setSession(m.SessionID)
	n.emit(eventPosition{turn: n.turn}, r)
}

// newNotice reports a notice that the client does not know yet. Most of them are passed over.
func (n *normaliser) newNotice(m *claude.UnknownMessage) {
	if m.Subtype() != "model_fallback" {
		return
	}
	change := loosely[struct {
		From    string `json:"original_model"`
		To      string `json:"fallback_model"`
		Trigger string `json:"trigger"`
	}](m.Raw())
	n.failed(eventPosition{turn: n.turn}, m.Subtype(), fmt.Sprintf("%s cannot answer (%s); %s goes on", change.From, cmp.Or(change.Trigger, "no reason given"), change.To), nil)
}

// retryCode keeps the API's class of the error: "overloaded", "rate_limit".
func retryCode(class string, status int) string {
	if class == "" && status != 0 {
		return "http_" + strconv.Itoa(status)
	}
	return cmp.Or(class, "no_response")
}

func retryMessage(class string, status, attempt, most int, wait time.Duration) string {
	what := "the API did not answer"
	if class != "" || status != 0 {
		what = "the API failed: " + retryCode(class, status)
	}
	if class != "" && status != 0 {
		what += fmt.Sprintf(" (HTTP %d)", status)
	}
	return fmt.Sprintf("%s; attempt %d of %d follows in %s", what, attempt, most, wait.Round(time.Millisecond))
}

var (
	_ event.Payload = Task{}
	_ event.Payload = Compaction{}
	_ event.Payload = RateLimit{}
)
