// SPDX-License-Identifier: Apache-2.0

// Package files has file systems for tools: a folder ([OpenDirFS]), a workspace ([Of]) or memory ([NewMemFS]), read-only or
// recorded, with [Glob] and [Grep] to search them. A handler finds the one that it works on in its context: see [From].
package files
