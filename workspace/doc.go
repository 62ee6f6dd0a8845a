// SPDX-License-Identifier: Apache-2.0

// Package workspace gives an agent a working directory: a folder of its own with copies of the files that it may
// see. The folder can be rolled back to the byte, compared, and written back to the host.
//
// # Mounts
//
// [Open] makes the folder and copies each [HostMount] into it. A path that leads out of the allowed roots, and an
// entry that is not a plain file, folder or link, is a [SecurityError]; then nothing is left behind.
// [Workspace.Close] removes the folder, or a later Open if the program was killed. [Workspace.Section] describes the
// contents to the model. A run whose request has the workspace works in it.
//
// # Checkpoints
//
// A [Tree] is any folder with its checkpoints. [Tree.Rollback] restores a checkpoint exactly: contents, modes,
// times, links, empty folders, files that git ignores and files that git keeps. The cost of a checkpoint depends on
// the changes since the last one. A file watcher names the paths to check. Each entry is read from the tree itself,
// and if the watcher could have missed an event, every entry is checked. Files that a rollback takes out of the tree
// are kept aside, bounded by TreeOptions.MaxDisk, and are named.
//
// # Transactions
//
// [Workspace.Begin] makes a tool call a transaction, and [ToolTx] each call of a registry: a call that fails leaves
// no trace in the files, and the model reads the list of restored files. Calls whose paths are known run at the same
// time; a call that may change everything runs alone. The adapter of an agent reports its calls.
//
// # Results
//
// [Workspace.Changes] returns the differences from the mounted files, [Workspace.Patch] writes them for git apply, and
// [Workspace.WriteBack] applies them to the host: all of them, or none. [Sync] keeps a [VirtualFileSystem] in a session.
//
// Package workspace/files has file systems for tools: of a workspace, of a folder, or in memory.
package workspace
