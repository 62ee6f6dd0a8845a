// SPDX-License-Identifier: Apache-2.0

// Package spill is a queue between a reader that must not wait and a consumer that may be slow.
//
// Promises:
//
//   - Items come out in the order they went in.
//   - [Queue.Push] never waits for the consumer. Up to a limit items stay in memory; those above
//     it go to a temporary file that has no name (on Windows: that the system deletes with its
//     last handle), so that nothing is left behind by a crash.
//   - In a paced queue, where more than 128 KiB are queued, Push gives a consumer that is at work
//     a moment to catch up, 20 ms at most; one that does not move is waited for once.
//   - Memory stays below the limit plus one item and a write buffer, however far the consumer
//     falls behind. Disk space that was read is given back in steps of a segment.
//   - After [Queue.Close] the consumer gets what is there, then the error of Close. An item that
//     could not be written to disk is not lost in silence: the consumer gets the error of the
//     disk instead of it, and nothing after it.
//
// All methods are safe for use by several goroutines.
package spill
