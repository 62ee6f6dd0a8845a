// SPDX-License-Identifier: Apache-2.0

// Package cgroup limits one cell by a control group of its own: the memory and the number of processes of everything in it
// together, which rlimits cannot do, because they count each process, or all processes of a user, alone.
//
// Promises:
//
//   - A group is made below the group of this process, so that the limits around this process hold
//     for the cell as well. Where version 2 of the hierarchy refuses that (a group may not have
//     processes and limited groups at once), it is made in the nearest group above that the kernel
//     lets us use and that hands on the controllers already; then only the limits from there up hold.
//   - Version 2 is used where it has the controllers that are needed, else version 1. Which users may
//     make groups is the kernel's decision: root, and each user with a delegated part of the hierarchy.
//   - No limit is silently weaker than requested: [New] fails with [ErrUnavailable] and the reason.
//   - The package ends no process. [Group.Close] removes a group that is empty.
//   - The name of a group contains its owner, so that [Sweep] removes groups of crashed programs of
//     ours and never a group of another program or of one that runs.
//
// There is no limit on the speed of the CPU: how much time was used is in [Group.CPUTime].
package cgroup
