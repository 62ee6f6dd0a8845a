// SPDX-License-Identifier: Apache-2.0

// Package watchdog bounds what a cell takes from the machine while it runs: room and files in its
// folders, free space on their disk, memory and CPU time of its processes. No other part bounds a
// folder that a cell may write to; memory and CPU time are for where there are no control groups.
//
// Counting:
//
//   - Bytes are those that are taken on the disk, not those that a file claims to have: a sparse file
//     counts with what was written of it, a folder with its own list. Both numbers are in [Measure].
//   - Files are files, folders, links and everything else that has a name. A file with several names
//     (hard links) counts once, in bytes and in files.
//   - Links are not followed, other file systems are entered only if set.
//   - Files that have no name any more but are still open count if [Options].Processes returns the processes
//     that may have them open.
//   - The limits are on what is added after [Start]; what was there before is free. Whole changes that.
//   - Memory is that of processes: what they have mapped. A cell can use more, in files in memory, shared
//     memory and sockets; MinMemory bounds that, by what is left on the machine.
//   - Free space is what an ordinary user may still take by the report of the file system.
//
// Promises:
//
//   - Watching costs at most a twentieth of a core: a large tree is looked at in slices over
//     several looks. Only if the disk lost more room than the folders may still take, a look is made
//     at once and in full, at a cost of at most a fifth of a core.
//   - A file that vanishes during a look is not an error. Unreadable folders are counted in
//     Measure.Unreadable; free space bounds them.
//   - A limit counts as broken only when a second, uninterrupted look finds it too, because a file that
//     is moved during a look may be seen twice. A file that is moved may also be missed by one look,
//     and is then seen by the next. A program that watches the watchdog can make it miss moved
//     files each time; the floor of free space does not depend on it.
//   - Neither the length of a path nor the depth of a tree hides files, on Linux.
//
// The watchdog ends no process: it notifies its caller, once.
package watchdog
