// SPDX-License-Identifier: Apache-2.0

// Package objects stores contents of files by their hash, each once, in few files of one folder.
//
// Contents of up to 1 MiB are appended to packs of 64 MiB. Larger ones are files of their own, which share their
// blocks with the file they come from where the file system can, and have its holes.
//
// References are counted: a content is kept until it was released as often as it was put and retained. The room of
// dead contents is reclaimed: a pack that is half dead is rewritten, the file of a large content is removed.
// [Options.MaxBytes] bounds the use of the disk at any time; while a pack is rewritten, one MiB may be there twice.
//
// The index is in memory, so a store does not outlive its process. Its folder belongs to the store alone, and its
// creator removes it.
//
// All methods may be called by several goroutines at once. Reading and hashing run in parallel; small contents are
// written one after the other.
package objects
