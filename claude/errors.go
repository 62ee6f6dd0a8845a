// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/launch"
)

// withoutKeys removes what looks like a key from a text that the CLI or the model's service wrote.
func withoutKeys(s string) string { return (*safetext.Redactor)(nil).String(s) }

// noSecrets is carried by errors whose text the CLI wrote: it knows the secrets of its run, which need
// not look like keys. The zero value knows only what keys look like.
type noSecrets struct{ redact *safetext.Redactor }

func (n noSecrets) text(s string) string { return n.redact.String(s) }

// Conditions that callers test for with errors.Is.
var (
	// ErrCLINotFound is returned when no Claude Code executable could be found.
	ErrCLINotFound = errors.New("claude: CLI not found")
	// ErrNotExecutable is returned when the CLI exists but cannot be run.
	ErrNotExecutable = launch.ErrNotExecutable
	// ErrClosed is returned by calls on a client that was closed by its owner.
	ErrClosed = errors.New("claude: client is closed")
	// ErrTooOld is returned when an option needs a newer CLI than the one that answered.
	ErrTooOld = errors.New("claude: CLI is too old")
)

// A ProcessError reports that the CLI ended when it should not have. After an error result it is a [ResultError] instead.
type ProcessError struct {
	Status ExitStatus
	// During reports what was going on: "initialize", "a turn" or "idle".
	During string
	// After is the time from launch to end.
	After time.Duration
	// StderrTail is the redacted end of what the CLI wrote to standard error.
	StderrTail string
}

func (e *ProcessError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "claude: the CLI ended during %s (%s after %.1f s)", e.During, e.Status, e.After.Seconds())
	if e.StderrTail != "" {
		fmt.Fprintf(&b, "\n  standard error: %s", strings.ReplaceAll(strings.TrimSpace(e.StderrTail), "\n", "\n    "))
	}
	return b.String()
}

// Advice implements [advice.Adviser], as far as the last output of the CLI is understood.
func (e *ProcessError) Advice() string {
	wrote := func(words string) bool { return strings.Contains(e.StderrTail, words) }
	switch {
	case wrote("root/sudo privileges"):
		return "run as an ordinary user, use another PermissionMode, or set IS_SANDBOX=1 where nothing can be harmed"
	case wrote("already in use"):
		return "choose another SessionID, or resume that session"
	case e.Status.Signal == "killed" || e.Status.Code == 137:
		return "something killed it; look for an out-of-memory kill, then start again"
	case e.StderrTail != "":
		return "fix the problem that it reports; Options.Debug makes it report more"
	case e.During == "initialize":
		return "run it by hand with --version to see that it is Claude Code; Options.Debug and Options.Stderr show more"
	}
	return "start again; Options.Debug and Options.Stderr show more"
}

// A ProtocolError reports a complete line of the CLI that starts like an object but is not JSON.
type ProtocolError struct {
	Line string // the beginning of the line, at most 200 bytes
	Err  error
}

func (e *ProtocolError) Error() string {
	return withoutKeys(fmt.Sprintf("claude: a line of the CLI's output is not valid JSON: %v: %q", e.Err, e.Line))
}

// Advice implements [advice.Adviser].
func (e *ProtocolError) Advice() string {
	return "check that nothing else writes to the CLI's standard output"
}

// Unwrap returns the JSON error.
func (e *ProtocolError) Unwrap() error { return e.Err }

// A MessageTooLargeError reports a line longer than Options.MaxLineBytes.
type MessageTooLargeError struct {
	Limit int
}

func (e *MessageTooLargeError) Error() string {
	return fmt.Sprintf("claude: the CLI wrote a line of more than %d bytes", e.Limit)
}

// Advice implements [advice.Adviser].
func (e *MessageTooLargeError) Advice() string {
	return "raise Options.MaxLineBytes, or keep tool results small"
}

// A ControlError is the CLI's refusal of a control request.
type ControlError struct {
	Subtype string // of the request
	Code    string // for example "unsupported_request"; empty on older CLIs
	Message string

	secrets noSecrets
}

func (e *ControlError) Error() string {
	code := ""
	if e.Code != "" {
		code = " (" + e.Code + ")"
	}
	return e.secrets.text(fmt.Sprintf("claude: %s refused%s: %s", e.Subtype, code, e.Message))
}

// Advice implements [advice.Adviser].
func (e *ControlError) Advice() string {
	if e.Code == "unsupported_request" {
		return "use a newer CLI, such as " + PinnedVersion
	}
	return "fix the problem that it reports; Options.Debug makes it report more"
}

// A ControlTimeoutError reports that the CLI did not answer a control request in time.
type ControlTimeoutError struct {
	Subtype string
	After   time.Duration
}

func (e *ControlTimeoutError) Error() string {
	return fmt.Sprintf("claude: no answer to %s within %s", e.Subtype, e.After)
}

// Advice implements [advice.Adviser].
func (e *ControlTimeoutError) Advice() string {
	return "raise the limit (Options.InitializeTimeout, or the context's deadline), or look at the CLI's stderr with Options.Stderr"
}

// Timeout reports true, as net.Error does.
func (e *ControlTimeoutError) Timeout() bool { return true }

// An OptionError names an option that cannot be used as given. Validation joins them, so that one run shows every fault.
type OptionError struct {
	Option string // field name, "Hooks[2].Matcher"
	Reason string
}

func (e *OptionError) Error() string { return "claude: option " + e.Option + ": " + e.Reason }
