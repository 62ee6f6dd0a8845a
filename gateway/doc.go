// SPDX-License-Identifier: Apache-2.0

// Package gateway connects agents with the model. An agent's cell has no network; it reaches only a
// listener that a [Run] of this package serves, outside of the cell. The gateway has the credential, which never
// enters the cell. It passes the model's answers byte for byte as they come and counts their cost. It ends a run
// in the middle of an answer when its budget is spent, and can record the traffic.
//
// Model calls go to an [Upstream]: Anthropic, a compatible endpoint, Bedrock, a scripted model
// or a recording. A [Wire] is a value with all that is particular to an API of models. The files wire_messages*.go
// and wire_bedrock*.go have the two of this package; no other file has a path, a field or an event of
// these APIs. Package gatewaytest has one that was invented for tests.
//
// # What passes
//
// Only calls of models pass, as the wire of the upstream names them: see [WireAnthropic] and [WireBedrock].
// The gateway answers all else, a missing or wrong token, and a model that is not among [RunOptions.Models] with
// status 403, and emits a [Refused]. A request may have 64 MiB and 64 KiB of headers, all requests of a run
// that are under way 256 MiB, and a run may have 256 connections. Headers about one connection, credentials, cookies and what
// proxies add do not pass, in either direction. A status of
// 401, with which the upstream refuses the credential, is reported as 403 so that the agent does not retry.
//
// Answers pass as they come, each piece at once. When the agent goes, or does not read for twenty seconds, the gateway
// reads on for ten seconds to learn what the answer cost, and then ends the call upstream. An answer that breaks off
// upstream breaks off for the agent too. The credential does not come back with an answer that repeats the request.
//
// # Counting
//
// The meter reads beside, from the same bytes: events of a stream, or an answer that is not streamed. The wire
// chooses it, never what an answer contains. It counts what the API reports. The input is reported when an answer begins, the
// output at its end; for an answer without its end the rest is estimated. Money is counted in
// billionths of a dollar by a table; the one for Claude's models is prices.json, which has a date and the source of each
// price. Models without a price are listed in [Usage.Unpriced] and cost nothing; where a budget
// limits the cost they are refused. Requests that only count tokens are free.
//
// # Limits
//
// A run records into its [guard.Tracker]s and asks them: before a call goes out, and after each report.
// When tokens, dollars or time are spent, or [Run.Stop] is called,
//
//   - no further call goes out: requests are answered with status 402, also those that wait;
//   - each answer that is under way ends at the next end of an event with an error in the form of the wire
//     ([Stream.ErrorEvent]), and its call upstream is ended. An answer that stops in the
//     middle of an event is ended after a second;
//   - an answer whose end the model has already reported comes to its end: it is complete and paid;
//   - [Run.Stopped] returns the reason, and a [Limit] is emitted once.
//
// The number of requests is exact: of all runs that share a tracker, never more than MaxRequests go out, and the last is
// not cut. For tokens and dollars the bound is what was in flight: when a report reaches the limit, only the calls that are
// under way at that moment, at most [Options.MaxInFlight] for each upstream, can still report, each at most its own answer.
// So what is counted stays below the limit plus one answer for each call in flight.
//
// The CLI ends its turn with status 402 at once. After an error in a stream it tries once more without
// streaming, which is answered with 402, unless CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK is set.
//
// # Waiting
//
// The runs of a [Gateway] share a queue for each name of an upstream: at most MaxInFlight calls at
// once, of one run three quarters of them, and the runs that wait are served in turn, so that a busy one does not
// starve another. When an upstream answers with status 429, or [Wire.Overloaded], the calls of the run are held
// back for as long as it asks, or one to thirty seconds, and those of other runs to upstreams of that name for a few
// seconds; after [Options.MaxWait] in all the answer is passed on unchanged. A wait that is asked for and is longer than MaxWait is passed on at once.
//
// # Secrets
//
// A [Credential] cannot be printed. Errors, logs and events of this package contain neither credentials
// nor tokens of runs; the bodies of an upstream's errors pass to the agent as they are.
package gateway
