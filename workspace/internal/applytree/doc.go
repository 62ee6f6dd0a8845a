// SPDX-License-Identifier: Apache-2.0

// Package applytree makes the paths of a tree what a plan wants. A crash at any moment neither loses a file nor
// leaves the tree half done for good.
//
// Contents are first staged outside of the tree, and a journal is written; until then the tree is untouched. Then
// entries that must go are renamed to a folder aside, wanted entries are renamed in, and modes and times are set,
// those of folders last. [Recover] handles a crash: it finishes an ordinary plan, and undoes one that is all or
// nothing. Both may be killed and called again.
//
// Nothing is ever deleted or written over: an entry in the way, expected or not, is renamed aside. An entry that the
// planner did not expect is named as a [Conflict]. Files survive the death of a process. After a power failure,
// staged contents that did not reach the disk are found by their hashes and left out.
//
// One process at a time may use a work folder.
package applytree
