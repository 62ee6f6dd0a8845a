// SPDX-License-Identifier: Apache-2.0

package isolation

import "strings"

// A Mode is a kind of authentication with the model. The package of an agent names those that it knows.
type Mode string

// Auth is the authentication with the model. The zero value takes the first that the host has: its variables,
// then the settings of its agent.
type Auth struct {
	// Only is the one mode to accept. Empty means the first that the host has.
	Only Mode
	// UseStoredLogin lets the run use, last of all, the login file of the host's agent. Without it the file is never opened.
	UseStoredLogin bool
	// LoginPath is that file. Empty means the one that the agent uses.
	LoginPath string
}

// An AuthError means that the run has no usable credential for the model.
type AuthError struct {
	// Reason is what is missing.
	Reason string
	// Fixes are the ways to fix it; one is enough.
	Fixes []string
	// Err is the cause, if there is one. Reason and Fixes include its text.
	Err error
}

// Unwrap returns the cause.
func (e *AuthError) Unwrap() error { return e.Err }

func (e *AuthError) Error() string { return "isolation: " + e.Reason }

// Advice implements [advice.Adviser].
func (e *AuthError) Advice() string { return strings.Join(e.Fixes, "\n") }
