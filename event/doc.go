// SPDX-License-Identifier: Apache-2.0

// Package event holds the facts of a run: what happened, in one form for every agent. It imports
// nothing else of Drover, so that every package can speak of the same facts.
//
// An [Event] is an envelope with one [Payload]. The kinds without a colon are common to all agents
// ("tool_use"); the others carry the name of the part that adds them ("gate:decision"). A reader
// must pass over kinds that it does not know: they arrive as [Extension], byte for byte.
//
// Promises:
//
//   - Marshalling an event and reading it again gives the same event, whatever its kind: times to
//     the millisecond, raw JSON byte for byte up to white space, without the Cause of an [Error].
//     See [Event.MarshalJSON] for what json.Marshal does to "<".
//   - What readers look into without asking is there: the tools of an [Init] are a list, the input of
//     a [ToolCall] or a [PermissionRequest] is an object, even where Go has nil.
//   - Every event that is written fits [Schema], if it was filled as the fields say: its inputs are objects, its words those
//     of the constants here, its figures counts. Fields and kinds may be added; those that are there keep name and type.
//   - In [Usage] a figure that was not reported is absent, never zero.
//   - The zero [Verdict] is a denial, and so is every value that is not known.
//
// The page docs/events.md lists every kind and field, with examples.
package event
