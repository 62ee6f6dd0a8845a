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
//     the millisecond, raw JSON byte for byte up to white space. See [Event.MarshalJSON] for what
//     json.Marshal does to "<".
//   - The zero [Verdict] is a denial, and so is every value that is not known.
package event
