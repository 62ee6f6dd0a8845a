// SPDX-License-Identifier: Apache-2.0

// Package persist holds persistent collections: values that never change once made. An operation
// that would change one returns a new version instead, which shares nearly all of its memory with
// the old, so keeping a version costs nothing and going back to it is an assignment.
//
// Any number of goroutines may read and extend any versions at the same time without a lock, as long as each version
// reached its goroutine in the way any value must (a channel, a lock, an atomic pointer).
//
// What is shared is the memory of the collection, not what its items point to: an item with
// pointers, maps or slices inside is as changeable as those are.
package persist
