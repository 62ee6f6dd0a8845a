// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package claude

// Denials. The tool did not run.
const (
	generalRefusal   = "The user denied this tool call. Do not retry it. Continue without it, or ask the user how to proceed."
	retryDenied      = " Retry once. If it is denied again, continue without it and report the failure."
	permissionFailed = "The permission check of the host program failed, so the tool did not run." + retryDenied
	hookFailed       = "The %s hook of the host program failed, so this was denied." + retryDenied
	matchedFailed    = "The %s hook (matcher %q) of the host program failed, so this was denied." + retryDenied
)

// Calls that cannot be made.
const (
	unknownTool       = "Server %[2]q has no tool %[1]q. Call only tools that are offered to you."
	argumentsNoObject = "The arguments of tool %s must be a JSON object. Call it again with an object."
	argumentsInvalid  = "The arguments of tool %s are invalid. Correct them and call it again: %v"
	unknownServer     = "No in-process MCP server %q. Call only tools of these servers: %s"
	serverClosing     = "The client of MCP server %q is closing. Do not call its tools again."
	serverNotAttached = "MCP server %q is not attached yet. Call the tool again later."
)

// Calls that may have run, without a result that can be used.
const (
	checkEffect       = " Before you repeat the call, check what it did."
	toolNotReturned   = "The tool stopped without a result." + checkEffect
	toolFailed        = "Tool %s failed and gave no reason." + checkEffect
	toolPanicked      = "Tool %s failed." + checkEffect + " Cause: panic: %v"
	resultMalformed   = "Tool %s ran, but its result is malformed." + checkEffect + " Cause: %v"
	resultNotJSON     = "The tool ran, but its result cannot be encoded as JSON." + checkEffect + " Cause: %v"
	outputRounded     = "Tool %s ran, but its output has a whole number beyond ±%d, which the CLI would round. Report that the tool must return it as a string." + checkEffect
	outputMissing     = "Tool %s ran, but returned no structured output." + checkEffect
	outputInvalid     = "Tool %s ran, but its output does not match its schema." + checkEffect + " Cause: %v"
	serverFailed      = "MCP server %q failed." + checkEffect + " Cause: %v"
	serverNotAnswered = "MCP server %q gave no answer to %s." + checkEffect
)
