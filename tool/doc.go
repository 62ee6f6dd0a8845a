// SPDX-License-Identifier: Apache-2.0

// Package tool holds tools for agents: each is declared once, with its parameters, its risk and its
// capabilities, and can then be called by a program, served to Claude Code, or served to any MCP
// client.
//
// Promises:
//
//   - Arguments are checked before a handler runs: unknown keys, wrong types and broken constraints
//     are refused with a text that a model can act on.
//   - A call never panics and never returns a Go error: whatever goes wrong is a [Result] with a
//     category, a code and a hint whether to try again.
//   - A tool made of other tools carries the union of their risks and capabilities.
//   - A call that is timed out or cancelled has its context ended. If the handler does not return
//     then, the result says so.
//
// # Tools made of others
//
// [Pipe] and [Parallel] make one tool of several; [Retry], [Bind], [Preprocess], [Postprocess],
// [Cached] and [RateLimited] change one. What they make is a tool like any other:
//
//   - It has all risks and capabilities of its parts, and is read-only only if every part is. An
//     option may add a risk; none can take one away.
//   - Of one part it has everything else as well; of several it has the tags, and the rest, such as
//     [WithAlwaysLoad] and [WithTitle], must be said anew.
//   - Values are hidden if those of a part are, and no more calls run at once than the strictest
//     part allows. It is served if all parts are.
//   - A part runs within the call of the whole: the id, the end of the context and everything in it,
//     progress and log are the whole's. A part's own timeout bounds the part.
//   - A part that fails, is denied, is cancelled or needs approval gives the whole that outcome, with
//     its category, its code and its hint whether to try again.
package tool
