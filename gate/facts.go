// SPDX-License-Identifier: Apache-2.0

package gate

import "time"

// Facts are what the caller knows about the run at the moment of a call. Every field may be left
// empty: an unknown fact limits nothing. The gate only reads.
type Facts struct {
	// Now is the time of the decision; Deadline is when the run must be over, zero for never.
	Now, Deadline time.Time
	// Remaining is what is left of the budgets.
	Remaining Remaining
	// Calls counts the tool calls that were decided before this one.
	Calls int
	// Invoked holds the tools that have succeeded, by their bare names.
	Invoked map[string]bool
	// ReadPaths holds the files that have been read, as clean absolute paths.
	ReadPaths map[string]bool
	// Blocked holds the tools that are not to be used for now, by bare or full names.
	Blocked map[string]bool
	// Allowed, unless it is nil, holds the only tools that may be used for now, by bare or full names.
	Allowed map[string]bool
	// Target is what the caller found where the call points to.
	Target Target
	// Dir is the working directory of the agent, to which relative paths of calls belong. It is absolute.
	Dir string
	// Workspace is the directory that the agent was started in, to which [Permissions.WritablePaths] belong, absolute and
	// with all links resolved: the agent can change Dir by a command, but not this. Empty means Dir.
	Workspace string
}

// Remaining is what is left of the budgets of a run. Nil means no budget; zero or less means that it is spent.
type Remaining struct {
	Tokens, InputTokens, OutputTokens *int64
	CostUSD                           *float64
}

// A Target is what the caller found out about the file that a call names. A gate does no I/O, so it cannot look itself.
type Target struct {
	// Path is the file with all links resolved. Empty means unknown.
	Path string
	// Missing is set if there is no such file.
	Missing bool
	// More are the other files, where a call is about several, as a patch is.
	More []Target
	// Unresolved is set if the path cannot be resolved. No rule then allows it.
	Unresolved bool
}
