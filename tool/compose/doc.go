// SPDX-License-Identifier: Apache-2.0

// Package compose makes tools of other tools, runs several calls of a registry at once, and finds
// tools of a registry by what they say of themselves.
//
// [Pipe] and [Parallel] make one tool of several; [Retry], [Bind], [Preprocess], [Postprocess],
// [Cached] and [RateLimited] change one. What they make is a tool like any other:
//
//   - It has all risks and capabilities of its parts, and is read-only only if every part is. An
//     option may add a risk; none can take one away.
//   - Of one part it has everything else as well; of several it has the tags, and the rest, such as
//     [tool.WithAlwaysLoad] and [tool.WithTitle], must be set again.
//   - Values are hidden if those of a part are, and no more calls run at once than the strictest
//     part allows. It is served if all parts are.
//   - A part runs within the call of the whole: the id, the end of the context and everything in it,
//     progress and log are the whole's. A part's own timeout bounds the part.
//   - A part that fails, is denied, is cancelled or needs approval gives the whole that outcome, with
//     its category, its code and its hint whether to try again.
//
// [Find], [Summarise] and [SearchTool] are for registries with too many tools to read. [ExecuteAll] runs several calls.
package compose
