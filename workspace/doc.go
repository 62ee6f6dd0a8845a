// SPDX-License-Identifier: Apache-2.0

// Package workspace gives an agent a place to work in: a folder of its own with copies of what it may see,
// which can be rolled back to the byte, compared, and written back to the host.
//
// # Mounts
//
// [Open] makes the folder and copies each [HostMount] into it. What would lead out of the allowed roots, and
// what is no plain file, folder or link, is a [SecurityError]; then nothing is left behind. The folder is gone
// after [Workspace.Close], or is removed by a later Open if the program was killed. [Workspace.Section] tells
// the model what is there. A run whose request has the workspace works in it.
//
// # Checkpoints
//
// A [Tree] is any folder with its checkpoints. [Tree.Rollback] makes it what it was at one: contents, modes,
// times, links, empty folders, what git ignores and what git keeps. A checkpoint costs what changed since the
// last one. A file watcher names what to look at; what an entry is is read from the entry itself, and where
// the watcher could have missed something, every entry is looked at. What a rollback takes out of the tree
// lies aside, bounded by TreeOptions.MaxDisk, and is named.
//
// # Transactions
//
// [Calls] makes the tool calls of a run transactions, and [ToolTx] those of a registry: a call that
// fails leaves no trace in the files, and the model reads what was put back. Calls whose paths are known work
// at the same time; one that may change everything is alone. The adapter of an agent reports its calls.
//
// # Results
//
// [Workspace.Changes] are what differs from what was mounted, [Workspace.Patch] is the same for git apply, and
// [Workspace.WriteBack] brings it to the host: all of it, or none. [Sync] keeps a [VirtualFileSystem] in a
// session.
//
// Package workspace/files has file systems for tools: of a workspace, of a folder, or in memory.
package workspace
