// SPDX-License-Identifier: Apache-2.0

// Package fleet keeps and runs agents on NATS JetStream: on a server inside the process, which needs one folder and has
// no port, or on a cluster. The same code serves both.
//
// # Runs
//
// [Fleet.Submit] keeps a request, idempotent by key, and returns a [Run]: wait for it, follow its events, cancel it, or
// find it again by its id. A [Worker] takes requests and runs the agent that [Handle] made of a [Handler], by
// [drover.Evaluate]. It keeps the lease of a run as long as the agent shows signs of life. An attempt that fails is repeated
// after a delay; a run that fails too often, or whose request does not decode, is dead with its reason until [Run.Retry].
//
// The log of a run is the truth: the claim of each worker, the events of the session, failures, the answer and
// the end. The end is recorded once, before the request is acknowledged. A request may be delivered again, also late; the log
// then shows that the run has ended or that another worker has it.
//
// # Order, limits and retention
//
// A request has a [Priority], and may wait for its time. A [Schedule] submits one again and again: each tick is one run. A [Limit] bounds
// what an agent or the fleet consumes in a day, and how many runs are under way, on all workers together. [Fleet.Prune] removes
// runs that have ended.
//
// # Recovery
//
// If a worker dies, the request is delivered to another one when the lease is over. That one opens the same session. The
// conversation of an agent whose adapter is an [agent.Keeper] is in the log too, and goes on from its last step: each call
// without a result gets the recorded one, or reads that its outcome is unknown or that it was not made. The workspace has
// what the finished calls have left there; other files are not restored.
//
// Without such a conversation the prompt is evaluated again, from its beginning. The gate then answers the calls that an
// earlier attempt has made, in their order:
//
//   - A call that is recorded as finished is denied, with its recorded result as the reason.
//   - A call that was allowed and has no recorded end has an unknown outcome. It is denied once, and the model reads that.
//   - Each further call runs, also if it is the same as an earlier one.
//
// Calls are the same if tool and input are, apart from the name of the working directory. An answer that is recorded is
// not paid for again: the next attempt begins with the finish step, which therefore may run more than once.
//
// # Logs
//
// A [Log] is a [session.Store]. Each append is one message with the sequence that it must follow. Opening a log appends
// a claim, so that the server refuses whatever an earlier holder still sends: it cannot change the log any more, also if
// it is cut off and believes that the log is its own. [Log.Lost] reports it, and a worker stops its run.
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
