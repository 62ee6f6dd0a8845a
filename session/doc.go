// SPDX-License-Identifier: Apache-2.0

// Package session keeps what happened, and makes state of it.
//
// A [Session] is an append-only log of events. State is what pure reducers make of that log, and
// nothing else: there is no way to change it but to dispatch. So the log explains every state, and a
// session that is opened again has the state that it was closed with.
//
// # The log
//
// Entries are numbered from 1 without gaps. [Session.Dispatch] appends one; when it returns, the entry
// is in the store, every reducer has seen it, and every reader will. Readers have a position:
// [Session.After] yields what is above it and then follows, so that replay and live view are one
// function. A reader that is slow, or gone, holds up nobody.
//
// # State
//
// A slice is a list of values of one Go type. [Query] reads it; [Reduce] and its kin say how events
// change it; a type that nobody wrote a reducer for has a slice of all values of it that were
// dispatched. Reducers run one after the other, in the order of the log and of their registration,
// whatever the number of goroutines that dispatch: no update is lost. They must be pure: they get
// values and return values, and call nothing of the session. One that fails or panics leaves its slice
// as it was; the others go on, and a [ReducerFailed] says so in the log. A failure on past
// events, when a slice is folded again, is only logged; so is a panic of a subscriber.
//
// A reducer may be registered at any time: the session then folds the slice again from the log. A name in
// the log belongs to one Go type: registering, asking for or dispatching a second one of that name is
// refused.
//
// # Snapshots and transactions
//
// [Session.Snapshot] and [Session.Restore] take constant time; nothing is copied. Slices of policy
// [State] go back with them, those of policy [Log] keep everything.
//
// A [Tx] is a tool call: what is dispatched in its context belongs to it. Rolling it back takes away
// what it did and nothing else, also if others dispatched meanwhile. Transactions nest and overlap. The
// log keeps everything: a rollback is one more entry.
//
// # Stores
//
// A session lives in memory, or behind a [Store]. State never runs ahead of the store: an event that
// could not be kept has changed nothing. See [OpenFile] for what survives what.
package session
