// SPDX-License-Identifier: Apache-2.0

// Package applytree makes the paths of a tree what a plan wants, so that a crash at any moment neither
// loses a file nor leaves the tree half done for good.
//
// Contents are staged outside of the tree first, and a journal is written; until then the tree is
// untouched. Then what must go is renamed to a folder aside, what is wanted is renamed in, and modes and
// times are set, those of folders last. [Recover] ends what a crash cut short: an ordinary plan is brought
// to its end, one that is all or nothing is undone. Both may be killed and called again.
//
// Nothing is ever deleted or written over: what is in the way, expected or not, is renamed aside. What the
// planner did not expect is named as a [Conflict]. Ours survives the death of a process. After a power
// failure staged contents that did not reach the disk are found by their hashes and left out.
//
// One process at a time may use a work folder.
package applytree
