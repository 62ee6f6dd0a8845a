// SPDX-License-Identifier: Apache-2.0

// Package agent drives any coding agent in one way: a [Request] goes in, a stream of [event.Event]
// comes out. An [Adapter] knows one agent, a [Registry] finds adapters by name, a [Runner] runs one
// with a role, defaults and a memory of the conversation, and [Parallel] runs many at once.
//
// An adapter may fail in every way that programs do. A Runner promises of its stream:
//
//   - It has exactly one [event.Done], and that is the last event, also if the adapter panics, ends
//     early, ends twice, goes on after the end, or does not end.
//   - Events are numbered from 1 without gaps, and carry the run, the agent and the role.
//   - The decision about a tool call is between its tool_use and its tool_result.
//   - Once the context has ended, the next event is the done, within [RunnerOptions.DrainTimeout]. Other
//     events are dropped, and counted in the done under [DroppedEvents].
//   - When the loop over the stream is over, however it ended, the adapter has ended too, with all
//     its processes; only an adapter that does not return is abandoned after
//     [RunnerOptions.CloseTimeout].
//   - A slow reader loses no events. A reader that waits makes the Runner stop reading from the
//     adapter once 256 events are waiting; decisions about tool calls never wait for a reader.
package agent
