// SPDX-License-Identifier: Apache-2.0

// Package claudetest tests agents without a key. [CLI] runs the real Claude Code CLI in a closed
// environment, [NewModel] is the scripted model that answers it on loopback, and [ScriptCLI] replaces
// the CLI for faults that the real one does not produce on demand.
//
// The package reads no real credential and no real home directory, and connects to loopback addresses
// only. A test fails if a process, a file or a goroutine is left behind.
package claudetest
