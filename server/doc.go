// SPDX-License-Identifier: Apache-2.0

// Package server has one HTTP API for runs, and the page that uses it.
//
// A [Server] lists the runs of a [record.Store], follows those in progress by their log, and starts others through a [Starter]. It
// reads the files of runs alone, in which secrets are replaced. Runs in progress of any program of the same user are watched,
// answered and stopped through a [Live] in that program.
//
// What changes something, and what reads events, needs a token, or the cookie and the secret for which the page has traded one. A
// viewer's token cannot change anything. Refusals are problem documents (RFC 9457).
package server
