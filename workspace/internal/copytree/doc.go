// SPDX-License-Identifier: Apache-2.0

// Package copytree copies a file or a folder from one rooted handle into another, in two steps: a [Plan]
// looks at everything, refuses what must not be copied and counts the bytes; then [Plan.Copy] copies it,
// with several workers. Nothing is written before the plan is whole.
//
// Both sides are reached through [filetree.Root] alone. Somebody who exchanges a folder of the source for
// a link while it is copied makes the copy fail, and never makes it read what the link leads to. A file
// that changes meanwhile is copied as it is read; one that disappears is left out.
//
// Copied are bytes, permissions, and times to the nanosecond, of folders too; links as links; names of
// one file as names of one file; holes as holes. Owners and extended attributes are not: the copy belongs
// to the user who makes it.
package copytree
