// SPDX-License-Identifier: Apache-2.0

// Package claudecode is the [agent.Adapter] for Claude Code: it makes options for the CLI of a request
// and events of the CLI's messages.
//
// It makes neither decisions nor state of its own. It asks the request's host about every tool call,
// at the hook that no permission mode goes around.
package claudecode
