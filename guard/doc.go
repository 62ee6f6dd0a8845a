// SPDX-License-Identifier: Apache-2.0

// Package guard keeps a run within its limits and its task: when it must be over, what it may consume, whether it is alive,
// which run it is, which feedback the agent gets, and whether the work is done when the agent stops.
//
// # Limits
//
// A [Deadline] is a moment; a [Budget] is what may be consumed until then; a [Tracker] counts it, for
// one evaluation or for several that share it. Promises:
//
//   - One rule everywhere: what reaches a limit has used it up. A budget is exhausted when consumed >=
//     max, a deadline exceeded when now >= deadline.
//   - Counts are exact for any recorder, any order and any number of goroutines. Money is
//     counted in billionths of a dollar, not in floating point.
//   - What was consumed never becomes less, independent of later reports.
//   - A limit that makes no sense, such as a negative one, allows nothing. [Budget.Validate] says so beforehand.
//   - Requests are limited before they begin, so exactly: never more than MaxRequests, and none of them
//     is ended by that limit.
//   - The zero Deadline, the zero Budget and a nil Tracker limit nothing.
//
// This package counts and reports. [gate.Limits], which reads the same figures, denies tool calls past a
// limit. The runner of a run ends it in mid-turn with the context of [Tracker.Context].
//
// # Heartbeat
//
// A [Heartbeat] is beaten by whatever shows that a run is alive. Others ask how long ago that was, or
// wait for a silence with [Heartbeat.Watch].
//
// # Run context
//
// A [RunContext] names run, request, session and attempt: in logs through [LogHandler], in traces by the W3C traceparent.
//
// # In a tool handler
//
// The runner of a call puts values into its context: see [DeadlineFrom], [TrackerFrom], [HeartbeatFrom] and
// [RunContextFrom]. Each returns a usable value even if the context has no such value.
//
// # Feedback and completion
//
// A [Feedbacker] asks its providers after tool calls for notes to the agent about its own work,
// each when its trigger says so: every so many calls, every so many seconds, when a file appears. A
// [Checker] says whether an agent that wants to stop has done its task. Commands of checkers run only
// through an [Exec] that the caller gives: what an agent wrote is not trusted code.
//
// # Time and ids
//
// The time comes from a [Clock] and ids from a function, so that replays and golden files are stable.
package guard
