// SPDX-License-Identifier: Apache-2.0

// Package fleet keeps the logs of runs on NATS JetStream: on a server inside the process, which needs one folder and has
// no port, or on a cluster. The same code serves both.
//
// # Logs
//
// A [Log] is a [session.Store]. Each append is one message with the sequence that it must follow. Opening a log appends
// a claim, so that the server refuses whatever an earlier holder still sends: it cannot change the log any more, also if
// it is cut off and believes that the log is its own. [Log.Lost] reports it.
//
// A body of more than 256 KiB is kept in the object store, before the message that refers to it.
//
// # What an acknowledgement means
//
// The embedded server syncs each append to the disk before it acknowledges it. A cluster acknowledges what most of
// its servers have received; they must run with sync_interval: always, or a loss of power on most of them at once may
// lose the last appends. An append whose acknowledgement is lost is sent again and kept once. If the server does
// not answer in time, the outcome is unknown: the holder then counts as lost, and the next one finds out.
package fleet
