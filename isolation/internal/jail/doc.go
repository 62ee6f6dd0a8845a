// SPDX-License-Identifier: Apache-2.0

// Package jail starts a program in a cell: a bubblewrap sandbox with namespaces of its own for files,
// processes, IPC, host name, control groups and network.
//
// Guarantees; [Start] fails if one of them cannot be kept:
//
//   - The program sees the system's /usr read-only, the mounts of the [Spec], a sized /tmp and
//     /dev/shm, and nothing else of the host's files. Paths are the same inside and outside.
//   - It sees no process, no socket and no network of the host, the loopback included. The only way
//     out are the listeners that were opened inside and handed out to the caller ([Cell.Listeners]).
//   - It has no capabilities, cannot gain any, cannot make user namespaces (unless Nested) and is kept
//     from the system calls that [Filter] names.
//   - Its host user is never root. Where this program is root, the cell runs as another user, and the
//     mounts are id-mapped so that what the cell writes belongs to the owner of the mounted folder.
//   - The launcher's environment and arguments, which a cell can read, contain nothing about the host.
//   - The end of the program, of bubblewrap or of the calling process ends everything inside. Nothing
//     stays mounted.
//
// The first program inside is a tiny helper without libraries, see helper/helper.c. [Launch] and
// [HelperFile] start it without bubblewrap too, for another isolation level.
//
// Not bounded here: the bytes that a writable mount takes on disk, memory beyond what resource limits
// give. Confine is for control groups, [Pids] the way for a watchdog.
package jail
