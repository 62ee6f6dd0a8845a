// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/schema"
)

// done is the end of the run: an error event, if any, and the done without ResumeToken. The next call reuses the slice.
//
// It is nothing at all, and the run goes on, if the CLI only tidied up a resumed session; see isRepair.
func (n *normaliser) done(end *claude.TurnEnd) []event.Event {
	clear(n.out)
	n.out = n.out[:0]
	n.flushTask(nil)
	if end == nil || end.Answer == nil {
		n.flushEarly()
		n.missingResult(end)
		return n.out
	}
	m := end.Answer
	if n.isRepair(m) {
		return n.out
	}
	n.flushEarly()
	loose := loosely[looseEnd](m.Raw())
	d := event.Done{Status: statusOf(m, loose), Result: m.Result, Output: n.output(m)}
	d.Duration = cmp.Or(m.Duration, loose.duration(), n.elapsed()) // the CLI's measurement, or else ours
	err := end.Err()
	switch d.Status {
	case event.DoneSuccess: // a result without a subtype is a success here, unlike in the client
		if !errors.Is(err, claude.ErrStructuredOutput) {
			err = nil
		} else {
			d.Status = event.DoneError
		}
	case event.DoneInterrupted:
		d.Reason = cmp.Or(m.TerminalReason, loose.Status)
	}
	if d.Status != event.DoneSuccess {
		d.Cause = err
	}
	if d.Status == event.DoneError || m.Subtype() != "" {
		d.Result = cmp.Or(m.Result, textOfError(err))
	}
	if d.Status == event.DoneError {
		failure := event.Error{Code: errorCode(m, err), Message: textOfError(err), Cause: err}
		if !has[*claude.ResultError](err) { // the kind of a result has advice of its own
			failure.Next = advice.Of(err)
		}
		n.emit(eventPosition{turn: n.turn}, failure)
	}
	d.Usage = n.usage.report(n.toolUses, d.Status == event.DoneInterrupted || end.Forced, d.Status == event.DoneSuccess)
	n.emit(eventPosition{turn: n.turn}, d)
	n.addEnd(end)
	return n.out
}

// wrapsOutput reports whether the CLI can give an answer of this schema only inside an object that the
// schema does not have. The CLI's client checks whether the schema can be used at all.
func wrapsOutput(text json.RawMessage) bool {
	s, err := schema.Parse(text)
	if err != nil {
		return false
	}
	_, wrapped, _ := schema.ForCLI(s)
	return wrapped
}

// output is the structured answer as its schema has it.
func (n *normaliser) output(m *claude.ResultMessage) json.RawMessage {
	output := n.firstAnswer(m.StructuredOutput)
	if n.wrapped && output != nil {
		return schema.Unwrap(output)
	}
	return output
}

// firstAnswer is the first answer that was accepted. The CLI reports the last one, where a message has several.
func (n *normaliser) firstAnswer(reported json.RawMessage) json.RawMessage {
	var accepted []json.RawMessage
	for _, a := range n.answers {
		if a.call.Succeeded {
			accepted = append(accepted, a.input)
		}
	}
	if reported == nil || len(accepted) < 2 {
		return reported
	}
	return accepted[0]
}

func (n *normaliser) missingResult(end *claude.TurnEnd) {
	cause := claude.ErrNoAnswer
	if end != nil {
		cause = end.Err()
	}
	if n.malformed != nil && !has[*claude.ProtocolError](cause) {
		cause = fmt.Errorf("%w\n  before that: %w", n.malformed, cause)
	}
	const message = "the agent ended without a result"
	n.emit(eventPosition{turn: n.turn}, event.Error{Code: codeMissingResult, Message: message, Cause: cause})
	d := event.Done{Status: event.DoneError, Result: message, Duration: n.elapsed(), Cause: cause}
	d.Usage = n.usage.report(n.toolUses, true, false)
	n.emit(eventPosition{turn: n.turn}, d)
}

// isRepair reports whether a result only ends a repair: a CLI that resumes a session which was cut off may first
// repair it, and report that as a turn without messages. In a new session the same result is the end.
func (n *normaliser) isRepair(m *claude.ResultMessage) bool {
	return n.req.Resume != "" && !n.emitted && !m.IsError && m.Subtype() == claude.ResultSuccess &&
		m.Result == "" && m.StructuredOutput == nil && m.Usage.Total() == 0 &&
		m.LocalCommand == "" && m.DeferredToolUse == nil && len(m.UserMessageUUIDs) == 0
}

// statusOf is how the run ended, by the result's subtype, which is "success" also for a turn that ended on an API error.
func statusOf(m *claude.ResultMessage, loose looseEnd) event.DoneStatus {
	failure := &claude.ResultError{Subtype: m.Subtype(), TerminalReason: m.TerminalReason}
	switch {
	case failure.Is(claude.ErrMaxTurns):
		return event.DoneMaxTurns
	case failure.Is(claude.ErrMaxBudget):
		return event.DoneMaxBudget
	case failure.Is(claude.ErrInterrupted):
		return event.DoneInterrupted
	case strings.HasPrefix(m.Subtype(), "error"), m.IsError, loose.IsError:
		return event.DoneError
	case m.Subtype() == claude.ResultSuccess:
		return event.DoneSuccess
	}
	return loose.status()
}

// errorCode keeps the most exact name that the CLI has for the error.
func errorCode(m *claude.ResultMessage, err error) string {
	subtype := m.Subtype()
	if subtype == claude.ResultSuccess {
		subtype = ""
	}
	if subtype == "" && errors.Is(err, claude.ErrStructuredOutput) {
		return codeOutput
	}
	refusal := ""
	if m.StopReason == "refusal" {
		refusal = m.StopReason
	}
	return cmp.Or(m.StartupFailureReason, subtype, m.APIErrorType, m.APIError, apiErrors[m.APIErrorStatus], refusal, codeResult)
}

// apiErrors are the API's names for its errors, for CLIs that send only the status.
var apiErrors = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error",
}

// textOfError is what went wrong: the errors of the result, else its text, else its subtype.
func textOfError(err error) string {
	if result, ok := errors.AsType[*claude.ResultError](err); ok {
		return result.Text()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// elapsed is the time since the first message.
func (n *normaliser) elapsed() time.Duration {
	if n.begun.IsZero() {
		return 0
	}
	return n.clock().Sub(n.begun)
}
