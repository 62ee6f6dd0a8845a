// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package tool

import (
	"fmt"
	"strings"
)

// Calls that did not run.
const (
	invalidInput     = "Validation error: %v. Correct the arguments and call the tool again."
	replacedInput    = "A policy replaced the arguments, and they are invalid: %v. Continue without this call."
	unknownTool      = "There is no tool %q. Call one of these: %s."
	notServed        = "Tool %s has no handler. Use another tool."
	noDryRun         = "Tool %s has no dry run. Continue without this call."
	unprepared       = "Error: the call could not be prepared, and the tool did not run. Continue without this call."
	callsExhausted   = "Call budget exhausted: %d calls are allowed. Call no more tools; give your final answer."
	timeExhausted    = "Time budget exhausted: calls are allowed for %s. Call no more tools; give your final answer."
	policyDenied     = "Policy denied"
	policyFailed     = "A policy failed: %v. Continue without this call."
	decisionFailed   = "The decision about this call failed. Continue without this call."
	needsApprovalFor = "Tool %s needs approval, and no approver was asked. Continue without this call."
	timeOver         = "The time for this call was over before the tool ran, and it did nothing. Call it again if you still need it."
)

// Calls that ran, or may have run.
const (
	checkEffects    = " Check what the tool did before you call it again."
	handlerFailed   = "Error: %v"
	handlerExited   = "the tool ended its goroutine without a result"
	handlerPanicked = "Error: the tool panicked: %v"
	invalidOutput   = "Error: the tool ran, but its result does not match its schema: %v." + checkEffects
	timedOut        = "The tool did not finish in time." + checkEffects
	cancelled       = "Cancelled"
	cancelledFor    = "Cancelled: %v"
	stillRuns       = "%s. It was asked to stop and still runs after %s. Do not call it again; its effects may come later."
	noReason        = "The call ended with %q, without a reason. Continue without its result."
)

// Manual returns the text about the tool that a model reads where the tool is served: the description, the
// deprecation and the examples.
func (t *Tool) Manual() string {
	var b strings.Builder
	b.WriteString(t.Description)
	if t.Deprecated != "" {
		fmt.Fprintf(&b, "\n\nDeprecated: %s", t.Deprecated)
	}
	for i, e := range t.Examples {
		if i == 0 {
			b.WriteString("\n\nExamples:")
		}
		fmt.Fprintf(&b, "\n%s", e.Input)
		if len(e.Output) > 0 {
			fmt.Fprintf(&b, " gives %s", e.Output)
		}
		if e.Description != "" {
			fmt.Fprintf(&b, " (%s)", e.Description)
		}
	}
	return b.String()
}
