// SPDX-License-Identifier: Apache-2.0

// Package claudecell describes Claude Code to package isolation: which program it is, which files of the host it needs,
// how its home is populated, which variables it has inside, and how the host pays for its model.
//
// [Open] opens a cell for the options of a CLI. [Program] is the description alone.
package claudecell
