// SPDX-License-Identifier: Apache-2.0

// Package session stores the events of a run, and computes state from them.
//
// A [Session] is an append-only log of events. Pure reducers compute its state from that log, and an entry
// of the log is the only way to change it. So the log explains every state, and a session that is opened again has the state
// that it was closed with.
//
// # The log
//
// Entries are numbered from 1 without gaps. [Session.Dispatch] appends one; when it returns, the entry is in the
// store, every reducer has seen it, and every reader will. Readers have a position: [Session.After] yields the
// entries above it and then follows, so that replay and live view are one function. A slow reader delays no other.
//
// # State
//
// A slice is a list of values of one Go type. [Query] reads it, and [Reduce] and its kin define how events change
// it. A type without a reducer has a slice of all its dispatched values. Reducers run one after the other, in the
// order of the log and of their registration, from any number of goroutines: no update is lost. They must be pure:
// they get values and return values, and call nothing of the session. A reducer that fails or panics leaves its
// slice unchanged; the others run, and the log gets a [ReducerFailed]. A failure on past events, when a slice is
// folded again, is only logged; so is a panic of a subscriber.
//
// A reducer may be registered at any time: the session then folds the slice again from the log. A name in the log
// belongs to one Go type: registering, querying or dispatching a second type of that name is refused.
//
// # Snapshots and transactions
//
// [Session.Snapshot] and [Session.Restore] take constant time; nothing is copied. Slices of policy [State] are
// restored, those of policy [Log] keep everything.
//
// A [Tx] is a tool call: events that are dispatched in its context belong to it. A rollback takes these events out
// of the state and no others, also if others dispatched meanwhile. Transactions nest and overlap. The log keeps
// everything: a rollback is one more entry.
//
// # Stores
//
// A session is in memory, or behind a [Store]. State is never ahead of the store: an event that could not be stored
// has changed nothing. [OpenFile] documents what survives a crash.
package session
