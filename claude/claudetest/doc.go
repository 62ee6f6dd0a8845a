// SPDX-License-Identifier: Apache-2.0

// Package claudetest tests agents without a key. [CLI] runs the real Claude Code CLI in a closed
// environment, [NewModel] is the scripted model that answers it on loopback, and [ScriptCLI] stands
// in for the CLI where a fault is wanted that the real one does not produce on demand.
//
// Nothing in this package reads a real credential or the real home directory, and nothing reaches
// an address other than loopback. A test fails if a process, a file or a goroutine is left behind.
package claudetest
