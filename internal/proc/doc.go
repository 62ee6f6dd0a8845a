// SPDX-License-Identifier: Apache-2.0

// Package proc starts one program and owns everything that program starts.
//
// Promises, wherever the platform can keep them:
//
//   - [Process.Wait] reaps, always, also if it is never called, and every call gives the same
//     status. When it returns on Linux with a PID namespace, every descendant is gone as well.
//   - [Process.Kill] ends the program and its descendants, may be called at any time from any
//     goroutine, and never reaches a process that merely inherited a recycled pid of the program.
//   - The end of the calling process, also by SIGKILL, ends the program on Linux. The goroutine or
//     thread that called [Start] may end earlier; that ends nothing.
//   - Reading stdout or stderr reports io.EOF when the program has ended, even if a descendant
//     still has the pipe open. Writing to stdin after the end gives [ErrEnded].
//
// The means to end the whole tree differ:
//
//   - Linux with bubblewrap: the program runs in a PID namespace of its own. No process can leave it
//     by sessions or double forks; the kernel ends all of it at once.
//   - Linux without: process group plus a walk over /proc. A descendant that detached itself
//     (setsid) and whose parent has already ended is not found and may remain.
//   - Other Unix systems: process group only. A process that called setsid may remain, and the sudden
//     death of the calling process is noticed by the program only as end of file on its stdin.
//   - Windows: a job object that ends all its members when its last handle closes, so also when
//     the calling process dies.
package proc
