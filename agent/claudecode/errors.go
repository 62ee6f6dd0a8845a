// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
)

var _ agent.Classifier = (*Adapter)(nil)

// stderrLines is how many lines of the CLI's standard error are reported.
const stderrLines = 20

// Classify implements [agent.Classifier]. Failures of the model, the process and its stream precede a wrong request.
func (*Adapter) Classify(err error) agent.Failure {
	result, hasResult := errors.AsType[*claude.ResultError](err)
	ended, hasEnded := errors.AsType[*claude.ProcessError](err)
	slow, isSlow := errors.AsType[*claude.ControlTimeoutError](err)
	switch {
	case errors.Is(err, gateway.ErrMaxTurns):
		return agent.Failure{Kind: agent.FailureMaxTurns}
	case errors.Is(err, guard.ErrBudgetExhausted):
		return agent.Failure{Kind: agent.FailureMaxBudget}
	case has[*isolation.AuthError](err):
		return agent.Failure{Kind: agent.FailureAuthentication}
	case has[*isolation.RefusedError](err), isAny(err, transcript.ErrNotFound, transcript.ErrBadKey, transcript.ErrInUse):
		return agent.Failure{Kind: agent.FailureRequest}
	case errors.Is(err, claude.ErrCLINotFound):
		return agent.Failure{Kind: agent.FailureUnavailable, Message: "Claude Code CLI not found. Install: npm install -g @anthropic-ai/claude-code"}
	case isAny(err, agent.ErrUnavailable, claude.ErrTooOld, claude.ErrNotExecutable):
		return agent.Failure{Kind: agent.FailureUnavailable}
	case hasResult:
		return ofResult(result)
	case hasEnded:
		return ofProcess(ended)
	case has[*claude.ProtocolError](err), has[*claude.MessageTooLargeError](err):
		return agent.Failure{Kind: agent.FailureProtocol, Message: "Failed to parse SDK response: " + firstLine(err)}
	case isSlow: // the CLI was there and did not come to the point where it could be asked anything
		return agent.Failure{Kind: agent.FailureStart, Details: map[string]any{"during": slow.Subtype}}
	case has[*claude.LaunchError](err), has[*claude.ControlError](err):
		return agent.Failure{Kind: agent.FailureRequest}
	case errors.Is(err, claude.ErrStructuredOutput):
		return agent.Failure{Kind: agent.FailureNoOutput}
	case errors.Is(err, claude.ErrNoAnswer):
		return agent.Failure{Kind: agent.FailureNoResult, Message: "No result message received from SDK"}
	case has[*claude.OptionError](err), has[*requestError](err):
		return agent.Failure{Kind: agent.FailureRequest}
	case isAny(err, fs.ErrNotExist, fs.ErrPermission): // files and folders of the request
		return agent.Failure{Kind: agent.FailureRequest}
	}
	return agent.Failure{}
}

func has[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

func ofProcess(ended *claude.ProcessError) agent.Failure {
	f := agent.Failure{Kind: agent.FailureProcess, Details: map[string]any{
		"exit_code": ended.Status.Code, "during": ended.During, "stderr": lastLines(ended.StderrTail),
	}}
	if ended.During == "initialize" { // it fails every time
		f.Kind = agent.FailureRequest
	}
	if ended.Status.Signal != "" {
		f.Details["signal"] = ended.Status.Signal
	}
	why := strings.TrimSpace(lastLines(ended.StderrTail))
	if why == "" {
		why = fmt.Sprintf("it ended during %s (%s) and wrote nothing to standard error", ended.During, ended.Status)
	}
	f.Message = "Claude Code process failed: " + why
	return f
}

func ofResult(result *claude.ResultError) agent.Failure {
	f := agent.Failure{Kind: resultKind(result), Details: map[string]any{"subtype": result.Subtype}}
	for key, value := range map[string]string{
		"api_error_type": result.APIErrorType, "api_error": result.APIError,
		"terminal_reason": result.TerminalReason, "startup_failure_reason": result.StartupFailureReason, "session_id": result.SessionID,
	} {
		if value != "" {
			f.Details[key] = value
		}
	}
	if result.APIErrorType == scriptError {
		f.Message, f.Next = ofScript(result.Error())
	}
	if result.APIErrorStatus != 0 {
		f.Details["api_error_status"] = result.APIErrorStatus
	}
	return f
}

// resultKinds are asked in order.
var resultKinds = []struct {
	reason error
	kind   agent.FailureKind
}{
	{claude.ErrStartup, agent.FailureRequest},
	{claude.ErrInterrupted, agent.FailureInterrupted},
	{claude.ErrMaxTurns, agent.FailureMaxTurns},
	{claude.ErrMaxBudget, agent.FailureMaxBudget},
	{claude.ErrStructuredOutput, agent.FailureOutputRetries},
	{claude.ErrPromptTooLong, agent.FailureTooLarge},
	{claude.ErrAuthentication, agent.FailureAuthentication},
	{claude.ErrRateLimited, agent.FailureRateLimit},
	{claude.ErrOverloaded, agent.FailureOverloaded},
}

// statusKinds are what other statuses of the API mean.
var statusKinds = map[int]agent.FailureKind{
	400: agent.FailureRequest, 402: agent.FailureQuota, 404: agent.FailureRequest, 408: agent.FailureTimeout,
	413: agent.FailureTooLarge, 504: agent.FailureTimeout,
}

// unreachable is what the gateway writes of a service that it cannot reach, with what refused behind it.
const unreachable = "the gateway cannot reach "

// scriptError is the type of the API error with which a model script refuses a request. Its status is that of an
// account that is short of money: the CLI does not repeat such a request.
const scriptError = "script_error"

// ofScript is why a model script did not answer, and what to do about it.
func ofScript(text string) (what, next string) {
	_, what, _ = strings.Cut(text, "script: ")
	if end := strings.LastIndex(what, ". Next: "); end >= 0 {
		return "the model script has no answer: " + what[:end], "add turns to the script, or give it a default"
	}
	return "the model script failed: " + what, "correct the script"
}

func resultKind(e *claude.ResultError) agent.FailureKind {
	if e.APIErrorType == scriptError {
		return agent.FailureRequest
	}
	for _, k := range resultKinds {
		if e.Is(k.reason) {
			return k.kind
		}
	}
	if kind, ok := statusKinds[e.APIErrorStatus]; ok {
		return kind
	}
	switch {
	case strings.Contains(e.Result, unreachable):
		return agent.FailureTimeout
	case e.APIErrorStatus >= 500, e.APIErrorType == "api_error":
		return agent.FailureServer
	case e.APIError == "connection_failed", e.APIErrorType == "timeout_error":
		return agent.FailureTimeout
	case e.APIErrorType == "billing_error":
		return agent.FailureQuota
	case e.StopReason == "refusal":
		return agent.FailureRefusal
	}
	return agent.FailureExecution
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-stderrLines):], "\n")
}

// addEnd adds further details of the result to the done event, which is the last.
func (n *normaliser) addEnd(end *claude.TurnEnd) {
	details, _ := json.Marshal(agent.End{ // it has a JSON form
		APIDurationMS: float64(n.modelTimeOf(end.Answer).Microseconds()) / 1e3,
		StopReason:    end.Answer.StopReason, Stderr: lastLines(end.StderrTail),
	})
	n.out[len(n.out)-1].Metadata = map[string]json.RawMessage{agent.EndDetails: details}
}

// modelTimeOf is how long the model took for a prompt. The CLI reports the sum of its process, and in a resumed
// session that of the processes before: then it cannot be longer than the prompt took.
func (n *normaliser) modelTimeOf(m *claude.ResultMessage) time.Duration {
	took := max(0, m.DurationAPI-n.modelTime)
	if n.req.Resume != "" {
		took = min(took, m.Duration)
	}
	n.modelTime = m.DurationAPI
	return took
}
