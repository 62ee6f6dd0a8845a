// SPDX-License-Identifier: Apache-2.0

// Package lines cuts a byte stream into lines.
//
// Promises:
//
//   - A line ends at LF; one CR before it is removed. Nothing else is looked at, so that a
//     character split between two reads arrives whole.
//   - Every returned line is memory of its own: one allocation of the exact size, kept alive by
//     nothing else, the caller's to keep.
//   - A line above the limit is reported once, as a [TooLongError], as soon as the limit is
//     passed; the next call continues after its end. It never costs more memory than the limit.
//   - Text between the last LF and the end of the stream is returned too, and
//     [Reader.Last] reports that it was not terminated.
//
// A Reader is not safe for use by several goroutines.
package lines
