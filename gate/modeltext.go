// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package gate

// These texts are fixed: programs compare them.
const (
	deadlineExceeded = "Deadline exceeded"
	tokensExhausted  = "Token budget exhausted"
	costExhausted    = "Cost budget exhausted"
	toolBlocked      = "Tool %s blocked by session policy"
	messageReadOnly  = "Read-only mode: mutating tools disabled."
	messageApply     = "Use --apply to allow mutating tools."
	messageDangerous = "Use --dangerous to allow this tool."
	toolNotAllowed   = "Tool not allowed: "
)

// Denials by a policy: the tool did not run.
const (
	callsExhausted   = "Tool call limit reached: %d of %d calls made. Call no more tools; give your final answer."
	toolNotListed    = "Tool %s is not on the list of allowed tools%s"
	useAnotherTool   = ". Use another tool."
	toolNotKnown     = useAnotherTool + " The catalogue of %s does not have this one; to allow it, the caller names it in UnknownTools, and in Tools, in a rule or in RiskOptions.Builtin."
	agentNotKnown    = toolNotAllowed + "%s. Use another tool. The gate has no catalogue of the agent; to allow the tool, the caller adds gate.KnowsAgent or names it in Tools or in a rule."
	toolDenied       = "%s is denied%s. Make an allowed call instead, or continue without it."
	toolOnlyAs       = "%s is allowed only as %s%s. Make such a call instead, or continue without it."
	needsEarlier     = "Tool %s needs these tools to succeed first: %s. Call them, then call it again."
	fileNotRead      = "%s has not been read; read it first, then write to it"
	fileNotKnown     = "The file of %s cannot be determined; give its absolute path"
	capabilityDenied = "%s needs the capability %s, which the permission policy denies." + withoutCall
	deniedBy         = "Denied by policy %s." + withoutCall
	policyFailed     = "Policy %s failed: %v." + withoutCall
	gateFailed       = "The gate failed: %v." + withoutCall
)

// The end of a denial by a rule.
const (
	byRule            = " by rule %s: %s"
	bySearch          = " by rule %s: a search of %s may read it; search a smaller directory"
	commandUnreadable = ": the command cannot be parsed: %v; write a simpler one"
	commandHidden     = ": the commands that %s runs cannot be determined; write them out"
	noRoot            = "its directory is unknown; set RuleOptions.Root or Facts.Dir" // for the author of the gate
	noPath            = "its path cannot be determined; use an absolute path"
)

// Denials by writable paths.
const (
	nothingWritable  = "%s writes files, and the permission policy has no writable paths. Continue without writing files."
	workspaceUnknown = "%s writes files, and the workspace of the writable paths is unknown. Continue without writing files. The host program can set Facts.Workspace or Facts.Dir, or the Dir of the call."
	writesUnknown    = "The path that %s writes to cannot be determined. Use an absolute path. Write only to %s in %s."
	notWritable      = "%s may not write %s. Write only to %s in %s."
)

// Questions, which a person reads too.
const (
	toolNeedsApproval       = "%s needs approval%s"
	capabilityNeedsApproval = "%s needs the capability %s, which has to be approved."
	noPolicyKnows           = "No policy knows the tool %s."
)

// Denials for want of an approval.
const (
	withoutCall       = " Continue without this call."
	unapprovedCall    = "%s needs approval%s, and %s." + withoutCall
	questionUnsaved   = "the question could not be recorded"
	noApprover        = "no approver is set"
	approverExited    = "the approver failed: it ended its goroutine"
	approverPanicked  = "the approver failed: it panicked"
	approverFailed    = "the approver failed: it returned an error"
	questionWithdrawn = "the question was withdrawn before an answer came (%v)"
	answerLate        = "no answer came within %s"
	notApproved       = "%s was not approved." + withoutCall
	noTerminal        = "No person is at the terminal to approve this call. Continue without it."
	unclearAnswer     = "The person at the terminal gave no clear answer." + withoutCall
	personRejected    = "The person at the terminal rejected this call. Continue without it."
	personReason      = "The person at the terminal rejected this call. The person's reason: %s\nDo not repeat the call unchanged. Do what the reason says."
)

// Denials because a decision could not be made.
const (
	badApprovedInput   = "%s is denied: the approver gave an input that is not a JSON object." + withoutCall
	decisionWithdrawn  = "%s is denied: the question was withdrawn before the decision." + withoutCall
	decisionUnsaved    = "%s is denied: the decision could not be recorded." + withoutCall
	decisionFailed     = "%s is denied: the decision failed." + withoutCall
	inputsDisagree     = "%s is denied: the policies do not agree on its input." + withoutCall
	candidatesDisagree = "%s is denied: the policies write different inputs for its name and for the tool that would run." + withoutCall
)
