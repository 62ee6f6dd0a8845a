// SPDX-License-Identifier: Apache-2.0

// Package transcript reads and changes the sessions that the Claude Code CLI keeps on disk, and
// copies them to a store so that a session can be resumed on another machine.
//
// # What it promises
//
//   - All files that it reads and writes are in the projects directory below the config directory.
//     All access goes through [os.Root]: a symbolic link that leads out is refused. A session id must
//     be a UUID before it becomes part of a path.
//   - Every entry keeps its raw JSON, and entry types that this version does not know survive
//     reading, mirroring, importing and resuming byte for byte.
//   - A torn last line, as a crash leaves it, is skipped when reading and never damages the line
//     that is appended after it.
//   - [List] reads at most the first and the last 64 KiB of a session of any size.
//   - [Mirror.Add] never blocks and never fails: entries that the store refuses are reported to a
//     callback and the session goes on. Entries of one file reach the store in their order.
//   - A [Resumed] directory is readable by its owner alone. Close removes it, as does [Materialise]
//     when it fails or is cancelled. Only a config directory that the caller names is copied into it.
//
// # What it does not promise
//
// The CLI writes a session's file 10 to 100 ms after the same line is on its output, so a session read during a run may lack
// its newest lines. A session with the same id below two projects is found once, in the newer file. A process that is killed
// leaves its [Resumed] directory behind, named drover-resume-* in the temporary directory. Paths are not normalised to
// Unicode form C: tests show that the CLI does not either.
package transcript
