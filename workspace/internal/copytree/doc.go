// SPDX-License-Identifier: Apache-2.0

// Package copytree copies a file or a folder from one rooted handle into another, in two steps. A [Plan] reads all
// entries, refuses those that must not be copied and counts the bytes. Then [Plan.Copy] copies them, with several
// workers. Nothing is written before the plan is complete.
//
// Both sides are reached only through [filetree.Root]. If a folder of the source is exchanged for a link while it is
// copied, the copy fails, and never reads the target of the link. A file that changes meanwhile is copied as it is
// read; one that disappears is left out.
//
// The copy has bytes, permissions, and times to the nanosecond, of folders too; links as links; names of one file as names
// of one file; holes as holes. Owners and extended attributes are not copied: the copy belongs to the user who makes it.
package copytree
