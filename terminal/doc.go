// SPDX-License-Identifier: Apache-2.0

// Package terminal shows a run: events in, lines out. A program passes each event of a stream to a [View], and gets what
// drover run shows.
//
// [New] looks at where it reads and writes:
//
//   - On a terminal the view is live: finished lines, and below them a status line with the activity, the time and the cost. Its
//     approver asks in the status line and takes a key.
//   - On a terminal that cannot move its cursor, and on Windows, it writes lines, and its approver asks between them.
//   - In a pipe, in a file and in the background it writes lines, and there is no approver: it is nil.
//
// [NewJSON] writes one event per line for another program.
//
// Promises to a person:
//
//   - A finished line is written once, in the order of the events, and stays.
//   - No line before the answer is wider than the terminal, or than 120 columns elsewhere.
//   - Text of a model or a tool is escaped: it cannot act on the terminal.
//   - Errors have no names of packages.
//   - A key that was typed before a question was shown does not answer it. A question that has no room is shown above it in full. One
//     that is answered elsewhere leaves a line: see [gate.AnsweredElsewhere].
//   - After Close the view writes nothing, and the terminal has the mode that it had before.
//
// The view knows no agent. What the tools of one are about is in [Options].Catalogue. Kinds of events that an agent adds are known by
// what follows its name: task, tokens, compaction and rate_limit, with the fields on the page docs/events.md.
//
// Not promised: the words and the columns of a line. A program reads JSON. Errors of the output are not reported, but for those of
// NewJSON: a caller that has to know of them passes a writer that notices.
package terminal
