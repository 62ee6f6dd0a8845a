// SPDX-License-Identifier: Apache-2.0

// Package treewatch reports which paths below a folder may have changed since the last call, so that the cost of
// checking a tree depends on its changes and not on its size. It only gives hints: a hint may be wrong, and the
// entry may have changed again since. It promises completeness: [Watcher.Take] names every change in a watched
// folder before the call, or reports Overflow.
//
// The promise has two reasons. The kernel queues an event before the system call that caused it returns, and the
// queue is read until it is empty. And each folder is added before it is read: the reader sees earlier changes, and
// the kernel reports later ones.
//
// Two changes are not reported, and the caller has to handle them:
//
//   - Writes through a shared mapping. Opened is reported before the first of them, and Written when the mapping
//     ends, also by the end of its process. In between, [Unwritten] is false: such a file has to be checked every
//     time, until it is true. See [Watcher.Settle].
//   - Changes through another name of the same file. A second name is reported where it is made, if that is in a
//     watched folder, and the first one is not. A file with several names has to be checked every time. Names that
//     are made outside of the tree are reported for files that were added by [Watcher.AddFile].
//
// [New] refuses network and layered file systems, whose changes are not all reported. It also refuses trees in which
// something else is mounted.
package treewatch
