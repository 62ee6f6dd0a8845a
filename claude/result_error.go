// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"errors"
	"fmt"
	"strings"
)

// Reasons why a turn failed, for errors.Is with a [ResultError].
var (
	// ErrInterrupted is returned when the turn was interrupted, by us or by a denial that asked for it.
	ErrInterrupted = errors.New("claude: the turn was interrupted")
	// ErrMaxTurns is returned when the limit of turns was reached.
	ErrMaxTurns = errors.New("claude: the limit of turns was reached")
	// ErrMaxBudget is returned when the budget was spent.
	ErrMaxBudget = errors.New("claude: the budget is spent")
	// ErrStructuredOutput is returned when the model gave no output that fits the schema.
	ErrStructuredOutput = errors.New("claude: no output that fits the schema")
	// ErrPromptTooLong is returned when the conversation does not fit into the model's context.
	ErrPromptTooLong = errors.New("claude: the prompt is too long")
	// ErrAuthentication is returned when the API refused the credentials, or credentials were missing.
	ErrAuthentication = errors.New("claude: not authenticated")
	// ErrRateLimited is returned when the API refused the request for now.
	ErrRateLimited = errors.New("claude: rate limited")
	// ErrOverloaded is returned when the API had no capacity.
	ErrOverloaded = errors.New("claude: the API is overloaded")
	// ErrStartup is returned when the CLI named a reason for not starting.
	ErrStartup = errors.New("claude: the CLI refused to start")
)

// A ResultError is a failed turn, as its [ResultMessage] reports it. The CLI exits with an error after
// such a result; that exit is this error too, not a [ProcessError].
type ResultError struct {
	Subtype              string
	Errors               []string // as the CLI wrote them, internal diagnostics included
	Result               string
	APIErrorStatus       int // HTTP status, zero without a status
	APIErrorType         string
	APIError             string
	StopReason           string
	TerminalReason       string
	StartupFailureReason string
	SessionID            string
	Message              *ResultMessage // the whole result

	secrets noSecrets
}

// Err returns a [ResultError] if the turn failed, else nil.
func (m *ResultMessage) Err() error { return m.errWithout(noSecrets{}) }

// errWithout is Err whose text never shows the secrets.
func (m *ResultMessage) errWithout(secrets noSecrets) error {
	if !m.Failed() {
		return nil
	}
	return &ResultError{
		secrets:              secrets,
		Subtype:              m.subtype,
		Errors:               m.Errors,
		Result:               m.Result,
		APIErrorStatus:       m.APIErrorStatus,
		APIErrorType:         m.APIErrorType,
		APIError:             m.APIError,
		StopReason:           m.StopReason,
		TerminalReason:       m.TerminalReason,
		StartupFailureReason: m.StartupFailureReason,
		SessionID:            m.SessionID,
		Message:              m,
	}
}

// internalDiagnostic begins texts that the CLI writes for its own developers.
const internalDiagnostic = "[ede_diagnostic]"

// Text returns the cause as text for people: the errors, else the result, else the subtype, else the HTTP status.
func (e *ResultError) Text() string {
	var lines []string
	for _, s := range e.Errors {
		if s = strings.TrimSpace(s); s != "" && !strings.HasPrefix(s, internalDiagnostic) {
			lines = append(lines, s)
		}
	}
	switch result := strings.TrimSpace(e.Result); {
	case len(lines) > 0:
		return strings.Join(lines, "; ")
	case result != "":
		return result
	case e.Subtype == ResultErrorDuringExecution && e.interrupted():
		return "interrupted"
	case e.Subtype != "" && e.Subtype != ResultSuccess:
		return strings.ReplaceAll(e.Subtype, "_", " ")
	case e.APIErrorStatus != 0:
		return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", e.APIErrorStatus, statusTexts[e.APIErrorStatus]))
	}
	return "the turn failed without a reason"
}

func (e *ResultError) Error() string {
	s := "claude: " + e.Text()
	if details := e.details(); details != "" {
		s += " (" + details + ")"
	}
	return e.secrets.text(s) // errors are logged; the fields keep what the CLI wrote
}

// details names the machine-readable causes that the text may not contain.
func (e *ResultError) details() string {
	var parts []string
	if e.APIErrorType != "" {
		parts = append(parts, e.APIErrorType)
	}
	for _, s := range []string{e.StartupFailureReason, e.TerminalReason} {
		if s != "" && s != "completed" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}

func (e *ResultError) interrupted() bool {
	return e.TerminalReason == "aborted_streaming" || e.TerminalReason == "aborted_tools"
}

// Is reports whether target is the reason of the failure.
func (e *ResultError) Is(target error) bool {
	switch target {
	case ErrInterrupted:
		return e.interrupted()
	case ErrMaxTurns:
		return e.Subtype == ResultErrorMaxTurns
	case ErrMaxBudget:
		return e.Subtype == ResultErrorMaxBudget || e.TerminalReason == "budget_exhausted"
	case ErrStructuredOutput:
		return e.Subtype == ResultErrorStructuredOutput
	case ErrPromptTooLong:
		return e.TerminalReason == "prompt_too_long"
	case ErrAuthentication:
		return e.notAuthenticated()
	case ErrRateLimited:
		return e.APIErrorStatus == statusTooManyRequests || e.APIErrorType == "rate_limit_error"
	case ErrOverloaded:
		return e.APIErrorStatus == statusOverloaded || e.APIErrorType == "overloaded_error"
	case ErrStartup:
		return e.StartupFailureReason != ""
	}
	return false
}

// Statuses of the API, not from net/http, which for them alone would be linked into every program and take 4 MB of memory.
const (
	statusUnauthorized    = 401
	statusForbidden       = 403
	statusNotFound        = 404
	statusRequestTimeout  = 408
	statusTooManyRequests = 429
	statusBadGateway      = 502
	statusGatewayTimeout  = 504
	statusOverloaded      = 529 // the API's own, for no capacity
)

var statusTexts = map[int]string{
	400: "Bad Request", statusUnauthorized: "Unauthorized", 402: "Payment Required", statusForbidden: "Forbidden",
	statusNotFound: "Not Found", statusRequestTimeout: "Request Timeout", 413: "Request Entity Too Large",
	statusTooManyRequests: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
	503: "Service Unavailable", 504: "Gateway Timeout", statusOverloaded: "Overloaded",
}

func (e *ResultError) notAuthenticated() bool {
	switch {
	case e.APIErrorStatus == statusUnauthorized, e.APIErrorStatus == statusForbidden:
		return true
	case e.APIErrorType == "authentication_error", e.APIErrorType == "permission_error":
		return true
	}
	return e.IsLogin()
}

// IsLogin reports whether the CLI had no credentials at all, so that no request was made.
func (e *ResultError) IsLogin() bool {
	return e.APIErrorStatus == 0 && strings.HasPrefix(e.Result, "Not logged in")
}

// Retryable reports whether the same prompt may succeed later without any change: the API was overloaded, limited the rate,
// had an error of its own, or could not be reached. The CLI has already repeated the request several times by then.
func (e *ResultError) Retryable() bool {
	switch {
	case e.StartupFailureReason != "":
		return false
	case e.Is(ErrRateLimited), e.Is(ErrOverloaded):
		return true
	case e.APIErrorStatus >= 500, e.APIErrorStatus == statusRequestTimeout:
		return true
	}
	return e.APIError == "connection_failed" || e.APIErrorType == "api_error" || e.APIErrorType == "timeout_error"
}

// Advice returns what to do next, or "" if that depends on the prompt.
func (e *ResultError) Advice() string {
	switch {
	case e.Is(ErrStartup):
		return startupAdvice(e.StartupFailureReason)
	case e.Is(ErrInterrupted):
		return "send the next prompt; the session can go on"
	case e.Is(ErrMaxTurns):
		return "raise Options.MaxTurns, or ask for less in one prompt"
	case e.Is(ErrMaxBudget):
		return "raise Options.MaxBudgetUSD"
	case e.Is(ErrStructuredOutput):
		return "make the schema easier to meet, or raise MAX_STRUCTURED_OUTPUT_RETRIES in the environment"
	case e.Is(ErrPromptTooLong):
		return "send /compact or /clear, or start a new session"
	case e.Is(ErrAuthentication):
		return "check ANTHROPIC_API_KEY, or log in with the CLI"
	case e.TerminalReason == "stop_hook_prevented", e.TerminalReason == "hook_stopped":
		return "look at the hooks: one of them ended the turn"
	case e.APIErrorStatus == statusNotFound:
		return "check Options.Model: the API does not know it"
	case e.APIErrorStatus == statusBadGateway, e.APIErrorStatus == statusGatewayTimeout, e.APIError == "connection_failed":
		return "check the connection to the model, or try again later"
	case e.Retryable():
		return "try again later"
	}
	return ""
}

func startupAdvice(reason string) string {
	switch reason {
	case "sandbox_required_unavailable":
		return "install bubblewrap and socat, or do not require the sandbox"
	case "cwd_unavailable":
		return "choose a working directory that exists"
	case "temp_dir_unusable":
		return "set TMPDIR to a directory that can be written"
	case "cli_version_too_old":
		return "install a newer Claude Code CLI"
	case "bypass_root":
		return "do not run as root with bypassPermissions"
	case "config_file_invalid", "managed_settings_invalid":
		return "repair the settings file that the message names"
	case "proxy_invalid":
		return "check HTTP_PROXY and HTTPS_PROXY"
	case "session_held_by_background":
		return "stop the background session, or fork it"
	}
	return "look at the CLI's stderr"
}
