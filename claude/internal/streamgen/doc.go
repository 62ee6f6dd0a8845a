// SPDX-License-Identifier: Apache-2.0

// Package streamgen writes streams of the shape that the Claude Code CLI writes, for benchmarks and
// tests. The same arguments always give the same bytes.
package streamgen
