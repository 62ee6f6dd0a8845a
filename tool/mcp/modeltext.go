// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package mcp

// Results of calls.
const (
	needsApproval = "This call needs approval, and the tool did not run. "
	checkEffects  = " Check what the tool did before you call it again."
	toolFailed    = "The tool failed and gave no reason." + checkEffects
	resultRounded = "The tool ran, but its result has a whole number beyond ±%d, which was rounded in transit, and no text. Report that the server must return the number as a string." + checkEffects
	serverClosed  = "The MCP server %s is closed. Do not call its tools again."
	serverLost    = "The connection to the MCP server %s is lost%s. The tool may have run." + checkEffects
	callRefused   = "The MCP server %s refused the call: %s\nCorrect the arguments and call it again, or continue without it."
)

// Contents that are not shown.
const (
	audioContent   = "[audio, %s, %d bytes, which cannot be shown]"
	binaryResource = "[%s, %s, %d bytes, which cannot be shown]"
	emptyResource  = "[an empty resource]"
	unknownContent = "[content of an unknown kind: %T]"
)

// Descriptions of imported tools.
const (
	plainDescription = "The tool %q of the MCP server %s."
	schemaInText     = "\n\nGive arguments that match this JSON Schema: "
)
