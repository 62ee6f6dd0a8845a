// SPDX-License-Identifier: Apache-2.0

// Package tool holds tools for agents: each is declared once, with its parameters, its risk and its capabilities, and can
// then be called by a program, served to Claude Code, or served to any MCP client.
//
// Promises:
//
//   - Arguments are checked before a handler runs: unknown keys, wrong types and broken constraints
//     are refused with a text that a model can act on.
//   - A call never panics and never returns a Go error: whatever goes wrong is a [Result] with a
//     category, a code and a hint whether to try again.
//   - A call that is timed out or cancelled has its context ended. If the handler does not return
//     then, the result states it.
//
// Package tool/compose makes tools of other tools, and finds tools of a registry by what they say of themselves.
package tool
