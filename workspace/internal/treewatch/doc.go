// SPDX-License-Identifier: Apache-2.0

// Package treewatch says which paths below a folder may have changed since it was asked last, so that a
// look at the tree costs what changed and not what there is. It only gives hints: a hint may be wrong, and
// the entry may have changed again since. What it promises is that nothing is left out: whatever happened
// in a watched folder before [Watcher.Take] was called is named by it, or it says Overflow.
//
// The promise rests on two things. The kernel queues an event before the system call that caused it
// returns, and the queue is read until it is empty. And each folder is added before it is looked at and read:
// what happens before is seen, what happens after is told.
//
// Two changes are not told, and the caller has to know of them:
//
//   - Writes through a shared mapping. The opening of the file is told before the first of them, and
//     Written when the mapping ends, also by the end of its process. In between, [Unwritten] is false:
//     such a file has to be looked at every time, until it is true. See [Watcher.Settle].
//   - What is done by another name of the same file. A second name is told where it is made, if that is in
//     a watched folder, and the first one is not. A file with several names has to be looked at every
//     time. Names that are made outside of the tree are told for files that were added by
//     [Watcher.AddFile].
//
// Network and layered file systems are refused by [New]: there, changes can come by ways that are not
// told. So are trees in which something else is mounted.
package treewatch
