// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
)

// A State is whether an agent can be run.
type State string

// The states.
const (
	// StateReady: the agent is there, in a version that was tested.
	StateReady State = "ready"
	// StateUntested: it is newer than the versions that were tested. It is run.
	StateUntested State = "untested"
	// StateUnknown: its version could not be read. It is run.
	StateUnknown State = "unknown"
	// StateUnsupported: it is too old. It is not run.
	StateUnsupported State = "unsupported"
	// StateMissing: it is not there.
	StateMissing State = "missing"
)

// Readiness is whether an agent can be run on this machine, and what to do if it cannot.
type Readiness struct {
	State State
	// Path and Version are of what was found.
	Path, Version string
	// Tested are the versions that were tested: "2.1.197 to 2.1.325".
	Tested string
	// Detail describes the problem. It is empty without one.
	Detail string
	// Repair is the command that fixes it.
	Repair string
	// Cause is the error behind it, where there is one.
	Cause error
}

// String is the state, what was found, and the problem: "ready: 2.1.325 at /usr/bin/claude".
func (r Readiness) String() string {
	text := string(r.State)
	if found := strings.TrimSpace(r.Version + " at " + r.Path); r.Path != "" {
		text += ": " + found
	}
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	return text
}

// ErrUnavailable is wrapped by the error of a run of an agent that is missing or too old.
var ErrUnavailable = errors.New("agent: the agent cannot be run")

// Available reports whether a run may begin: the agent is neither missing nor unsupported.
func (r Readiness) Available() bool {
	return r.State != StateMissing && r.State != StateUnsupported
}

// Err is nil if a run may begin, and else has the problem and the repair.
func (r Readiness) Err() error {
	if r.Available() {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "it is %s", r.State)
	if r.Detail != "" {
		b.WriteString(": " + r.Detail)
	}
	return fmt.Errorf("%w: %s%w", ErrUnavailable, b.String(), hidden{r})
}

// hidden adds the cause and the repair to an error, and no text, since Detail has it.
type hidden struct{ Readiness }

func (hidden) Error() string    { return "" }
func (h hidden) Advice() string { return h.Repair }
func (h hidden) Unwrap() error  { return h.Cause }
